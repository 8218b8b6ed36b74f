/* The data of a page that was written earlier, part by part. Input is not to be trusted: what has
 * another form than it should is skipped, and its size is 0. */
#ifndef REPORT_PAGE_READ_H
#define REPORT_PAGE_READ_H

#include "base/arena.h"
#include "base/json.h"

struct page_data {
    struct json json; /* before the first value */
    const uint8_t *bulk;
    size_t bulk_size;
    struct arena arena; /* of what is taken */
    void *memory;
};

/* Unpacks the block of data. PLUMB_E_FORMAT: there is none. Free it in any case. */
enum plumb_code page_data_read(struct page_data *data, const void *bytes, size_t size,
                               struct plumb_error *err);
void page_data_free(struct page_data *data);

/* Whether the next value is an array or object, which is then open; anything else is skipped. */
bool page_enter(struct page_data *data, enum json_event what);

/* Whether another key of the open object follows. */
bool page_next_key(struct page_data *data);

/* The next value. NULL when out of memory; "" and NaN for anything else. */
const char *page_take_text(struct page_data *data);
double page_take_number(struct page_data *data);

/* A list: how many numbers it has, of which the first are in out. */
size_t page_take_numbers(struct page_data *data, double *out, size_t room);

/* An array of the bulk. NULL: it is not what it should be, or memory ran out. */
double *page_take_bulk(struct page_data *data, size_t *count);

#endif
