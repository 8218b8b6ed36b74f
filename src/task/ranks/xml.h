/* XML parts of a workbook, parsed by libexpat within limits. */
#ifndef RANKS_XML_H
#define RANKS_XML_H

#include "plumb/error.h"

#include <stdbool.h>

struct xml_handlers {
    void *context;
    /* Names come without their prefix; attributes are name, value, name, value, ..., NULL. False
     * stops the parsing, and the error that was noted is the result. */
    bool (*start)(void *context, const char *name, const char **attributes);
    bool (*end)(void *context, const char *name);
    bool (*text)(void *context, const char *text, size_t length);
};

/* Parses a whole document. what is what errors call it. When a handler stopped it, err is left to
 * the handler and PLUMB_E_ARG is returned. */
enum plumb_code xml_parse(const void *bytes, size_t size, const char *what,
                          const struct xml_handlers *handlers, struct plumb_error *err);

/* The value of an attribute, by its name without prefix; NULL when there is none. */
const char *xml_attribute(const char **attributes, const char *name);

#endif
