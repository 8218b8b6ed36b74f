/* Feeding libexpat in pieces, and refusing what no workbook has. */
#include "task/ranks/xml.h"

#include <expat.h>
#include <inttypes.h>
#include <string.h>

enum { CHUNK = 1 << 20, MAX_DEPTH = 64 };

struct parsing {
    XML_Parser parser;
    const struct xml_handlers *handlers;
    unsigned depth;
    bool moved;         /* something was told since the last piece */
    bool stopped;       /* by a handler */
    const char *refuse; /* what is not taken, or NULL */
};

static const char *local_name(const char *name)
{
    const char *colon = strrchr(name, ':');
    return colon ? colon + 1 : name;
}

const char *xml_attribute(const char **attributes, const char *name)
{
    for (; attributes[0]; attributes += 2)
        if (strcmp(local_name(attributes[0]), name) == 0)
            return attributes[1];
    return NULL;
}

static void stop(struct parsing *parsing, const char *refuse)
{
    parsing->refuse = refuse;
    parsing->stopped = !refuse;
    XML_StopParser(parsing->parser, XML_FALSE);
}

static void on_start(void *context, const XML_Char *name, const XML_Char **attributes)
{
    struct parsing *parsing = context;
    parsing->moved = true;
    if (++parsing->depth > MAX_DEPTH)
        stop(parsing, "elements nested that deeply are refused");
    else if (!parsing->handlers->start(parsing->handlers->context, local_name(name), attributes))
        stop(parsing, NULL);
}

static void on_end(void *context, const XML_Char *name)
{
    struct parsing *parsing = context;
    parsing->moved = true;
    parsing->depth--;
    if (!parsing->handlers->end(parsing->handlers->context, local_name(name)))
        stop(parsing, NULL);
}

static void on_text(void *context, const XML_Char *text, int length)
{
    struct parsing *parsing = context;
    parsing->moved = true;
    if (!parsing->handlers->text(parsing->handlers->context, text, (size_t)length))
        stop(parsing, NULL);
}

/* Workbooks have none, and entities, which can unfold to any size, are declared nowhere else. */
static void on_doctype(void *context, const XML_Char *name, const XML_Char *system,
                       const XML_Char *public_id, int internal)
{
    (void)name, (void)system, (void)public_id, (void)internal;
    stop(context, "a document type is refused");
}

/* Expat 2.9 deprecates the function whose result may have 32 bits for one that has 64. */
static int64_t position(XML_Parser parser)
{
#if XML_MAJOR_VERSION > 2 || (XML_MAJOR_VERSION == 2 && XML_MINOR_VERSION >= 9)
    return XML_GetCurrentByteIndex64(parser);
#else
    return XML_GetCurrentByteIndex(parser);
#endif
}

static enum plumb_code report(const struct parsing *parsing, const char *what,
                              struct plumb_error *err)
{
    enum XML_Error error = XML_GetErrorCode(parsing->parser);
    if (parsing->stopped)
        return PLUMB_E_ARG;
    if (error == XML_ERROR_NO_MEMORY)
        return plumb_no_memory(err);
    return plumb_fail(err, PLUMB_E_FORMAT, "byte %" PRId64 " of %.200s: %s",
                      position(parsing->parser), what,
                      parsing->refuse ? parsing->refuse : XML_ErrorString(error));
}

/* Expat collects an attribute, or a comment, whole and several times over; nothing in a workbook
 * fills a piece. */
static enum plumb_code refuse_endless(struct parsing *parsing, const char *what,
                                      struct plumb_error *err)
{
    return plumb_fail(err, PLUMB_E_FORMAT,
                      "byte %" PRId64 " of %.200s: a tag of more than %d bytes",
                      position(parsing->parser), what, CHUNK);
}

enum plumb_code xml_parse(const void *bytes, size_t size, const char *what,
                          const struct xml_handlers *handlers, struct plumb_error *err)
{
    struct parsing parsing = {.handlers = handlers, .parser = XML_ParserCreate(NULL)};
    if (!parsing.parser)
        return plumb_no_memory(err);
    XML_SetUserData(parsing.parser, &parsing);
    XML_SetElementHandler(parsing.parser, on_start, on_end);
    XML_SetCharacterDataHandler(parsing.parser, on_text);
    XML_SetStartDoctypeDeclHandler(parsing.parser, on_doctype);

    enum plumb_code code = PLUMB_OK;
    const char *at = bytes;
    do {
        int length = size < CHUNK ? (int)size : CHUNK;
        size -= (size_t)length;
        parsing.moved = false;
        if (XML_Parse(parsing.parser, at, length, size == 0) != XML_STATUS_OK)
            code = report(&parsing, what, err);
        else if (!parsing.moved && length == CHUNK)
            code = refuse_endless(&parsing, what, err);
        at += length;
    } while (size && !code);
    XML_ParserFree(parsing.parser);
    return code;
}
