/* What the processes of a crew say to each other, as bytes. */
#include "crew/message.h"

void message_pack(struct pack *pack, struct message *message)
{
    unsigned kind = message->kind;
    pack_below(pack, &kind, MESSAGE_KINDS);
    message->kind = (enum message_kind)kind;
    if (kind == MESSAGE_HELLO) {
        pack_bytes(pack, &message->version, &message->version_size);
        pack_bytes(pack, &message->host, &message->host_size);
        pack_below(pack, &message->lanes, MESSAGE_LANES + 1);
        pack_check(pack, message->host_size < MESSAGE_HOST);
    }
    if (kind == MESSAGE_PIECE || kind == MESSAGE_REPLY || kind == MESSAGE_CANNOT) {
        pack_u64(pack, &message->job);
        pack_u64(pack, &message->piece);
    }
    if (kind == MESSAGE_PIECE)
        pack_bytes(pack, &message->handler, &message->handler_size);
    if (kind == MESSAGE_PIECE || kind == MESSAGE_REPLY)
        pack_bytes(pack, &message->body, &message->body_size);
}
