/* What can be drawn of a page that was written earlier. */
#define _GNU_SOURCE
#include "plumb/plot.h"

#include "plumb/file.h"
#include "report/page_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_TENSORS = 200 };

struct pictured {
    struct page_data data;
    struct plumb_report_call *calls;
    struct plumb_pictured_tensor tensors[MOST_TENSORS];
};

/* ---- Calls ----------------------------------------------------------------------------------- */

enum number { MODULE, BACK, RANK, STEP, TOTAL, LOCAL, LIMIT, BAND, MOOD, WORD, NUMBERS };

static const char *const number_keys[NUMBERS] = {"module", "back",  "rank", "step", "total",
                                                 "local",  "limit", "band", "mood", "word"};

struct network {
    const char **names, **modules, **words;
    size_t n_names, n_modules, n_words;
    double *numbers[NUMBERS];
    size_t counts[NUMBERS];
};

/* False when out of memory. */
static bool take_names(struct page_data *data, const char ***list, size_t *count)
{
    size_t capacity = 0;
    bool fine = true;
    *count = 0;
    if (!page_enter(data, JSON_ARRAY))
        return true;
    for (enum json_event e; (e = json_next(&data->json)) > JSON_END && e != JSON_ARRAY_END;) {
        if (*count == capacity) {
            capacity = 2 * capacity + 64;
            const char **more = realloc(*list, capacity * sizeof *more);
            if (!more)
                return false;
            *list = more;
        }
        size_t length;
        const char *name = e == JSON_STRING ? json_copy(&data->json, &data->arena, &length) : "";
        json_skip(&data->json, e);
        fine &= name || data->json.error;
        (*list)[(*count)++] = name ? name : "";
    }
    return fine;
}

static struct plumb_report_call call_of(const struct network *net, size_t k)
{
    double of[NUMBERS];
    for (int n = 0; n < NUMBERS; n++)
        of[n] = net->numbers[n][k];
    const bool known = of[MODULE] >= 0 && of[MODULE] < (double)net->n_modules;
    const bool said = of[WORD] >= 0 && of[WORD] < (double)net->n_words;
    const bool mood = of[MOOD] >= 0 && of[MOOD] < PLUMB_MOODS;
    return (struct plumb_report_call){
        .name = net->names[k],
        .module = known ? net->modules[(size_t)of[MODULE]] : "",
        .back = of[BACK] != 0,
        .rank = of[RANK] >= -1 && of[RANK] <= INT32_MAX ? (int32_t)of[RANK] : -1,
        .step = of[STEP] >= -1 && of[STEP] <= INT32_MAX ? (int32_t)of[STEP] : -1,
        .total = of[TOTAL],
        .local = of[LOCAL],
        .limit = of[LIMIT],
        .band = of[BAND],
        .mood = mood ? (enum plumb_mood)of[MOOD] : PLUMB_MOOD_UNSEEN,
        .word = said ? net->words[(size_t)of[WORD]] : "",
        .row = -1};
}

/* False when out of memory. Columns of different lengths are no calls. */
static bool take_network(struct pictured *is, struct plumb_pictured *out)
{
    struct page_data *data = &is->data;
    struct network net = {0};
    bool fine = true, even = true;
    if (!page_enter(data, JSON_OBJECT))
        return true;
    while (fine && page_next_key(data)) {
        int number = 0;
        while (number < NUMBERS && !json_is(&data->json, number_keys[number]))
            number++;
        if (json_is(&data->json, "names"))
            fine = take_names(data, &net.names, &net.n_names);
        else if (json_is(&data->json, "modules"))
            fine = take_names(data, &net.modules, &net.n_modules);
        else if (json_is(&data->json, "words"))
            fine = take_names(data, &net.words, &net.n_words);
        else if (number < NUMBERS)
            net.numbers[number] = page_take_bulk(data, &net.counts[number]);
        else
            json_skip(&data->json, JSON_KEY);
    }
    for (int n = 0; n < NUMBERS; n++)
        even &= net.numbers[n] && net.counts[n] == net.n_names;
    free(is->calls);
    is->calls = fine && even ? calloc(net.n_names + 1, sizeof *is->calls) : NULL;
    out->n_calls = is->calls ? net.n_names : 0;
    for (size_t k = 0; k < out->n_calls; k++)
        is->calls[k] = call_of(&net, k);
    fine &= !even || is->calls;
    out->calls = is->calls;
    free(net.names);
    free(net.modules);
    free(net.words);
    return fine;
}

/* ---- Tensors --------------------------------------------------------------------------------- */

/* Eighths of powers of two below the largest one (page_tensor.c). */
static double error_of(double cell, double largest)
{
    return cell == 0 ? 0 : cell >= 255 ? INFINITY : largest * exp2((cell - 254) / 8);
}

static bool is_between(double value, double low, double high)
{
    return value >= low && value <= high && value == floor(value);
}

static void take_map(struct page_data *data, struct plumb_detail *detail)
{
    double axes[2] = {0}, size[2] = {0}, extent[2] = {0}, largest = NAN, *cells = NULL;
    size_t count = 0, n[3] = {0};
    while (page_next_key(data)) {
        if (json_is(&data->json, "axes"))
            n[0] = page_take_numbers(data, axes, 2);
        else if (json_is(&data->json, "size"))
            n[1] = page_take_numbers(data, size, 2);
        else if (json_is(&data->json, "extent"))
            n[2] = page_take_numbers(data, extent, 2);
        else if (json_is(&data->json, "largest"))
            largest = page_take_number(data);
        else if (json_is(&data->json, "values"))
            cells = page_take_bulk(data, &count);
        else
            json_skip(&data->json, JSON_KEY);
    }
    bool fine = cells && n[0] == 2 && n[1] == 2 && n[2] == 2 && detail->n_maps < PLUMB_DETAIL_MAPS;
    for (int k = 0; k < 2; k++)
        fine = fine && is_between(axes[k], -1, PLUMB_MAX_RANK) &&
               is_between(size[k], 1, PLUMB_DETAIL_CELLS) && is_between(extent[k], size[k], 0x1p53);
    if (!fine || count != (size_t)size[0] * (size_t)size[1])
        return;
    for (size_t k = 0; k < count; k++)
        cells[k] = error_of(cells[k], largest);
    detail->maps[detail->n_maps++] =
        (struct plumb_error_map){.axes = {(int)axes[0], (int)axes[1]},
                                 .extent = {(int64_t)extent[0], (int64_t)extent[1]},
                                 .size = {(unsigned)size[0], (unsigned)size[1]},
                                 .largest = cells};
}

/* The number of an element in C order; false: there is no such place. */
static bool index_of(const struct plumb_detail *detail, const double *at, size_t n, uint64_t *index)
{
    *index = 0;
    for (unsigned k = 0; k < detail->rank && n == detail->rank; k++)
        if (!is_between(at[k], 0, (double)detail->shape[k] - 1) ||
            __builtin_mul_overflow(*index, (uint64_t)detail->shape[k], index) ||
            __builtin_add_overflow(*index, (uint64_t)at[k], index))
            return false;
    return n == detail->rank;
}

struct worst {
    double at[PLUMB_MAX_RANK + 1];
    size_t n;
    double target, golden, error;
};

static void take_worst(struct page_data *data, struct worst *worst)
{
    while (page_next_key(data)) {
        if (json_is(&data->json, "at"))
            worst->n = page_take_numbers(data, worst->at, PLUMB_MAX_RANK + 1);
        else if (json_is(&data->json, "target"))
            worst->target = page_take_number(data);
        else if (json_is(&data->json, "golden"))
            worst->golden = page_take_number(data);
        else if (json_is(&data->json, "error"))
            worst->error = page_take_number(data);
        else
            json_skip(&data->json, JSON_KEY);
    }
}

static void set_shape(struct plumb_detail *detail, const double *shape, size_t rank)
{
    bool fine = rank <= PLUMB_MAX_RANK + 1;
    for (size_t k = 0; k < rank && fine; k++) {
        fine = is_between(shape[k], 0, 0x1p53);
        detail->shape[k] = fine ? (int64_t)shape[k] : 0;
    }
    detail->rank = fine ? (unsigned)rank : 0;
}

static void take_tensor(struct page_data *data, struct plumb_pictured_tensor *tensor)
{
    struct plumb_detail *detail = &tensor->detail;
    double shape[PLUMB_MAX_RANK + 1] = {0};
    struct worst worst = {.n = SIZE_MAX};
    tensor->name = "";
    while (page_next_key(data)) {
        const bool maps = json_is(&data->json, "maps"), elements = json_is(&data->json, "worst");
        if (json_is(&data->json, "name")) {
            tensor->name = page_take_text(data);
        } else if (json_is(&data->json, "shape")) {
            set_shape(detail, shape, page_take_numbers(data, shape, PLUMB_MAX_RANK + 1));
        } else if (maps || elements) {
            bool first = true;
            if (!page_enter(data, JSON_ARRAY))
                continue;
            for (enum json_event e; (e = json_next(&data->json)) > JSON_END && e != JSON_ARRAY_END;
                 first = false) {
                if (maps && e == JSON_OBJECT)
                    take_map(data, detail);
                else if (elements && first && e == JSON_OBJECT)
                    take_worst(data, &worst);
                else
                    json_skip(&data->json, e);
            }
        } else {
            json_skip(&data->json, JSON_KEY);
        }
    }
    struct plumb_worst_element *is = &detail->worst[0];
    detail->n_worst = index_of(detail, worst.at, worst.n, &is->index);
    is->target = worst.target;
    is->golden = worst.golden;
    is->error = worst.error;
}

static void take_tensors(struct pictured *is, struct plumb_pictured *out)
{
    struct page_data *data = &is->data;
    if (!page_enter(data, JSON_ARRAY))
        return;
    for (enum json_event e; (e = json_next(&data->json)) > JSON_END && e != JSON_ARRAY_END;)
        if (e == JSON_OBJECT && out->n_tensors < MOST_TENSORS)
            take_tensor(data, &is->tensors[out->n_tensors++]);
        else
            json_skip(&data->json, e);
    out->tensors = is->tensors;
}

/* ---- All of it ------------------------------------------------------------------------------- */

static void take_sentence(struct page_data *data, struct plumb_pictured *out)
{
    if (!page_enter(data, JSON_OBJECT))
        return;
    while (page_next_key(data))
        if (json_is(&data->json, "sentence"))
            out->sentence = page_take_text(data);
        else
            json_skip(&data->json, JSON_KEY);
}

static bool take_all(struct pictured *is, struct plumb_pictured *out)
{
    struct page_data *data = &is->data;
    bool fine = true;
    if (!page_enter(data, JSON_OBJECT))
        return true;
    while (fine && page_next_key(data)) {
        if (json_is(&data->json, "title"))
            out->title = page_take_text(data);
        else if (json_is(&data->json, "answer"))
            take_sentence(data, out);
        else if (json_is(&data->json, "network"))
            fine = take_network(is, out);
        else if (json_is(&data->json, "tensors") && !out->n_tensors)
            take_tensors(is, out);
        else
            json_skip(&data->json, JSON_KEY);
    }
    for (size_t k = 0; k < out->n_tensors; k++)
        fine &= is->tensors[k].name || data->json.error;
    return fine && ((out->title && out->sentence) || data->json.error);
}

enum plumb_code plumb_pictured_parse(struct plumb_pictured *out, const void *bytes, size_t size,
                                     struct plumb_error *err)
{
    *out = (struct plumb_pictured){.title = "", .sentence = ""};
    struct pictured *is = calloc(1, sizeof *is);
    if (!is)
        return plumb_no_memory(err);
    out->memory = is;
    const enum plumb_code code = page_data_read(&is->data, bytes, size, err);
    if (code)
        return code;
    const bool fine = take_all(is, out);
    if (is->data.json.error)
        return json_fail(&is->data.json, 0, err);
    return fine ? PLUMB_OK : plumb_no_memory(err);
}

enum plumb_code plumb_pictured_read(struct plumb_pictured *out, const char *path,
                                    struct plumb_error *err)
{
    struct plumb_file file;
    struct plumb_file_guard guard;
    *out = (struct plumb_pictured){.title = "", .sentence = ""};
    enum plumb_code code = plumb_file_map(&file, path, 0, UINT64_MAX, err);
    if (code)
        return code;
    plumb_file_guard_enter(&guard, &file);
    code = plumb_pictured_parse(out, file.data, file.size, err);
    if (plumb_file_guard_leave(&guard) && !code)
        code = plumb_fail(err, PLUMB_E_IO, "the file was cut short while it was read");
    plumb_file_unmap(&file);
    if (code)
        plumb_error_in_file(err, path);
    return code;
}

void plumb_pictured_free(struct plumb_pictured *pictured)
{
    struct pictured *is = pictured->memory;
    if (is) {
        page_data_free(&is->data);
        free(is->calls);
    }
    free(is);
    *pictured = (struct plumb_pictured){.title = "", .sentence = ""};
}
