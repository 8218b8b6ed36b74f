/* The rows of the result file, gathered output by output. */
#include "task/precision/api.h"

#include <stdlib.h>
#include <string.h>

void api_list_init(struct api_list *list, const struct precision_profile *profile,
                   struct precision_writer *writer)
{
    *list = (struct api_list){.profile = profile, .writer = writer};
}

void api_list_free(struct api_list *list)
{
    free(list->entries);
    map_free(&list->places);
    arena_free(&list->arena);
    *list = (struct api_list){0};
}

static bool is_same(struct csv_cell a, struct csv_cell b)
{
    return a.length == b.length && memcmp(a.text, b.text, a.length) == 0;
}

static bool copy_text(struct api_list *list, struct csv_cell *to, const char *text, size_t length)
{
    *to = (struct csv_cell){arena_copy(&list->arena, length ? text : "", length), length};
    return to->text;
}

static void write_row(struct api_list *list, const struct api_entry *entry, enum verdict forward,
                      enum verdict backward, struct csv_cell message)
{
    precision_write_result(list->writer, entry->name, forward, backward, message,
                           entry->judged ? plumb_word_text(entry->word) : "", entry->why);
    list->written++;
    list->counts[forward > backward ? forward : backward]++;
}

static struct csv_cell text_cell(const char *text)
{
    return (struct csv_cell){text, strlen(text)};
}

static void write_entry(struct api_list *list, const struct api_entry *entry)
{
    struct csv_cell message = entry->message;
    if (entry->told != entry->forward && entry->told != entry->backward)
        message.length = 0; /* of an output that was skipped beside others that were not */
    if (entry->unsupported) {
        write_row(list, entry, VERDICT_SKIP, VERDICT_SKIP,
                  text_cell("outputs of this type are not compared"));
        return;
    }
    const char *remark =
        list->profile->remark ? list->profile->remark(entry->api, entry->forward) : NULL;
    if (remark)
        message = text_cell(remark);
    write_row(list, entry, entry->forward, entry->backward, message);
}

static enum plumb_code new_entry(struct api_list *list, struct csv_cell name, struct csv_cell api,
                                 struct plumb_error *err)
{
    if (list->count == list->capacity) {
        size_t capacity = list->capacity ? list->capacity * 2 : 64;
        struct api_entry *entries = realloc(list->entries, capacity * sizeof *entries);
        if (!entries)
            return plumb_no_memory(err);
        list->entries = entries;
        list->capacity = capacity;
    }
    struct api_entry *entry = &list->entries[list->count];
    *entry = (struct api_entry){0};
    if (!copy_text(list, &entry->name, name.text, name.length) ||
        !copy_text(list, &entry->api, api.text, api.length))
        return plumb_no_memory(err);
    list->count++;
    return PLUMB_OK;
}

/* The open entry of a list by stretch: the one before it is written when the name changes. */
static enum plumb_code next_entry(struct api_list *list, const struct output_name *name,
                                  struct api_entry **entry, struct plumb_error *err)
{
    if (!list->count || !is_same(list->entries[0].name, name->full)) {
        if (list->count)
            write_entry(list, &list->entries[0]);
        list->count = 0;
        enum plumb_code code = new_entry(list, name->full, name->api, err);
        if (code)
            return code;
    }
    *entry = &list->entries[0];
    return PLUMB_OK;
}

static enum plumb_code find_entry(struct api_list *list, const struct output_name *name,
                                  struct api_entry **entry, struct plumb_error *err)
{
    if (list->count && is_same(list->entries[list->count - 1].name, name->full)) {
        *entry = &list->entries[list->count - 1];
        return PLUMB_OK;
    }
    const uint64_t *known = map_get(&list->places, name->full.text, name->full.length);
    if (!known) {
        enum plumb_code code = new_entry(list, name->full, name->api, err);
        if (code)
            return code;
        const struct csv_cell *kept = &list->entries[list->count - 1].name;
        uint64_t *place = map_put(&list->places, kept->text, kept->length, NULL);
        if (!place)
            return plumb_no_memory(err);
        *place = list->count - 1;
        known = place;
    }
    *entry = &list->entries[*known];
    return PLUMB_OK;
}

/* An API's message is that of its worst output. */
static enum plumb_code take_message(struct api_list *list, struct api_entry *entry,
                                    const struct output_name *name, enum verdict verdict,
                                    const struct buf *message, struct plumb_error *err)
{
    if (verdict <= entry->told || verdict == VERDICT_PASS || !message->size)
        return PLUMB_OK;
    entry->told = verdict;
    if (verdict == VERDICT_SKIP)
        return copy_text(list, &entry->message, message->data, message->size)
                   ? PLUMB_OK
                   : plumb_no_memory(err);
    char *text = arena_printf(&list->arena, "%.*s: %s", (int)name->place.length, name->place.text,
                              message->data);
    if (!text)
        return plumb_no_memory(err);
    entry->message = text_cell(text);
    return PLUMB_OK;
}

/* The worst word of all outputs, and why. */
static enum plumb_code take_opinion(struct api_list *list, struct api_entry *entry,
                                    const struct output_name *name, const struct opinions *opinions,
                                    struct plumb_error *err)
{
    if (!opinions->asked || !opinions->given ||
        (entry->judged && plumb_word_severity(opinions->word) <= plumb_word_severity(entry->word)))
        return PLUMB_OK;
    struct buf why = {0};
    opinions_put_why(&why, name->place, opinions);
    const bool kept = !why.failed && copy_text(list, &entry->why, why.data, why.size);
    buf_free(&why);
    entry->judged = true;
    entry->word = opinions->word;
    return kept ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code api_list_add(struct api_list *list, const struct output_name *name,
                             enum verdict verdict, bool unsupported, const struct buf *message,
                             const struct opinions *opinions, struct plumb_error *err)
{
    struct api_entry *entry = NULL;
    enum plumb_code code = list->profile->by_stretch ? next_entry(list, name, &entry, err)
                                                     : find_entry(list, name, &entry, err);
    if (!code)
        code = take_opinion(list, entry, name, opinions, err);
    if (code)
        return code;
    entry->unsupported = unsupported;
    if (unsupported)
        return PLUMB_OK;
    enum verdict *status = name->direction == DIRECTION_FORWARD    ? &entry->forward
                           : name->direction == DIRECTION_BACKWARD ? &entry->backward
                                                                   : NULL;
    if (!status)
        return PLUMB_OK;
    if (*status < verdict)
        *status = verdict;
    return take_message(list, entry, name, verdict, message, err);
}

enum plumb_code api_list_skip(struct api_list *list, struct csv_cell name,
                              const struct buf *message, struct plumb_error *err)
{
    if (list->profile->by_stretch) {
        write_row(list, &(struct api_entry){.name = name}, VERDICT_SKIP, VERDICT_SKIP,
                  (struct csv_cell){message->data, message->size});
        return PLUMB_OK;
    }
    enum plumb_code code = new_entry(list, name, name, err);
    if (code)
        return code;
    struct api_entry *entry = &list->entries[list->count - 1];
    entry->forward = entry->backward = entry->told = VERDICT_SKIP;
    return copy_text(list, &entry->message, message->data, message->size) ? PLUMB_OK
                                                                          : plumb_no_memory(err);
}

void api_list_finish(struct api_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        write_entry(list, &list->entries[i]);
}
