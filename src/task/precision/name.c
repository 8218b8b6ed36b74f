/* Taking the name of an output apart. */
#include "task/precision/name.h"

#include <string.h>

enum { FEWEST = 6, MOST = 7 };

static struct csv_cell between(const char *from, const char *to)
{
    return (struct csv_cell){from, (size_t)(to - from)};
}

static bool is_word(struct csv_cell cell, const char *word)
{
    return cell.length == strlen(word) && memcmp(cell.text, word, cell.length) == 0;
}

bool precision_name(struct csv_cell text, struct output_name *name)
{
    const char *dots[MOST], *end = text.text + text.length;
    size_t count = 0;
    for (const char *at = text.text; at && at < end && (at = memchr(at, '.', (size_t)(end - at)));
         at++) {
        if (count == MOST)
            return false;
        dots[count++] = at;
    }
    if (count + 1 < FEWEST || count + 1 > MOST)
        return false;
    const char *number = dots[count - 4], *way = dots[count - 3]; /* the dots before them */
    name->api = between(dots[0] + 1, number);
    name->full = between(text.text, way);
    name->place = between(way + 1, end);
    struct csv_cell direction = between(way + 1, dots[count - 2]);
    name->direction = is_word(direction, "forward")    ? DIRECTION_FORWARD
                      : is_word(direction, "backward") ? DIRECTION_BACKWARD
                                                       : DIRECTION_OTHER;
    return true;
}
