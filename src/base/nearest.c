/* The nearest of several names. */
#define _GNU_SOURCE
#include "base/nearest.h"

#include <stdint.h>
#include <string.h>

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static size_t edit_distance(const char *a, size_t na, const char *b, size_t nb)
{
    size_t rows[3][NEAREST_LONGEST + 1];
    size_t *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= nb; j++)
        before[j] = last[j] = j;
    for (size_t i = 1; i <= na; i++) {
        row[0] = i;
        for (size_t j = 1; j <= nb; j++) {
            row[j] = least(last[j - 1] + (a[i - 1] != b[j - 1]), least(last[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *spare = before;
        before = last;
        last = row;
        row = spare;
    }
    return last[nb];
}

void nearest_init(struct nearest *nearest, const char *text)
{
    *nearest = (struct nearest){.text = text, .distance = SIZE_MAX};
}

void nearest_try(struct nearest *nearest, const char *name, size_t length)
{
    size_t written = strnlen(nearest->text, NEAREST_LONGEST);
    if (length > NEAREST_LONGEST)
        return;
    size_t gap = written > length ? written - length : length - written;
    if (gap >= nearest->distance) /* the distance is no less */
        return;
    size_t distance = edit_distance(nearest->text, written, name, length);
    if (distance >= nearest->distance)
        return;
    nearest->distance = distance;
    memcpy(nearest->name, name, length);
    nearest->name[length] = '\0';
}

bool nearest_is_close(const struct nearest *nearest)
{
    size_t letters = strlen(nearest->text + strspn(nearest->text, "-"));
    size_t most = letters / 3 + 1; /* farther than this is a guess */
    return nearest->distance < most || (nearest->distance == most && most < letters);
}
