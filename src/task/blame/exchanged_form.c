/* Functions that exchange tensors, and their arguments. */
#include "task/blame/exchanged_form.h"

#include "verdict/recorded.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

static const struct form forms[] = {
    {"all_reduce", REDUCED, 0, "tensor", "tensor", 0, 1, "op"},
    {"functional_all_reduce", REDUCED, 0, "input", "", RETURNED, 1, "reduce_op"},
    {"functional_all_reduce_", REDUCED, 0, "input", "", RETURNED, 1, "reduce_op"},
    {"reduce", REDUCED, 0, "tensor", "tensor", 0, 2, "op"},
    {"broadcast", SENT_FROM_ONE, 0, "tensor", "tensor", 0, NO_PLACE, ""},
    {"all_gather", GATHERED, 1, "tensor", "tensor_list", 0, NO_PLACE, ""},
    {"all_gather_into_tensor", GATHERED, 1, "input_tensor", "output_tensor", 0, NO_PLACE, ""},
    {"_all_gather_base", GATHERED, 1, "input_tensor", "output_tensor", 0, NO_PLACE, ""},
    {"all_gather_single", GATHERED, 1, "input_tensor", "output_tensor", 0, NO_PLACE, ""},
    {"functional_all_gather_into_tensor", GATHERED, 0, "input", "", RETURNED, NO_PLACE, ""},
    {"gather", GATHERED, 0, "tensor", "gather_list", 1, NO_PLACE, ""},
    {"scatter", DEALT_FROM_ONE, 1, "scatter_list", "tensor", 0, NO_PLACE, ""},
    {"reduce_scatter", REDUCED_DEALT, 1, "input_list", "output", 0, 2, "op"},
    {"reduce_scatter_tensor", REDUCED_DEALT, 1, "input", "output", 0, 2, "op"},
    {"_reduce_scatter_base", REDUCED_DEALT, 1, "input", "output", 0, 2, "op"},
    {"reduce_scatter_single", REDUCED_DEALT, 1, "input", "output", 0, 2, "op"},
    {"functional_reduce_scatter_tensor", REDUCED_DEALT, 0, "input", "", RETURNED, 1, "reduce_op"},
    {"all_to_all", EXCHANGED_ALL, 1, "input_tensor_list", "output_tensor_list", 0, NO_PLACE, ""},
    {"all_to_all_single", EXCHANGED_ALL, 1, "input", "output", 0, 2, "output_split_sizes"},
    {"functional_all_to_all_single", EXCHANGED_ALL, 0, "input", "", RETURNED, 1,
     "output_split_sizes"},
    {"send", POINT_TO_POINT, 0, "tensor", "", NO_PLACE, NO_PLACE, ""},
    {"isend", POINT_TO_POINT, 0, "tensor", "", NO_PLACE, NO_PLACE, ""},
    {"recv", POINT_TO_POINT, NO_PLACE, "", "tensor", 0, NO_PLACE, ""},
    {"irecv", POINT_TO_POINT, NO_PLACE, "", "tensor", 0, NO_PLACE, ""},
    {"batch_isend_irecv", BATCH, 0, "p2p_op_list", "p2p_op_list", 0, NO_PLACE, ""},
};

const struct form *form_of(const struct graph_node *node)
{
    size_t length;
    const char *op = graph_op(node->name, &length);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++)
        if (strlen(forms[k].op) == length && memcmp(forms[k].op, op, length) == 0)
            return &forms[k];
    return NULL;
}

/* ---- Arguments ------------------------------------------------------------------------------- */

const char *form_below(const struct plumb_record *record)
{
    const char *key = record->key ? record->key : record->name;
    const size_t length = strlen(record->recorded->api);
    return strncmp(key, record->recorded->api, length) == 0 && key[length] == '.' ? key + length + 1
                                                                                  : "";
}

bool form_begins(const char *text, const char *word, const char **rest)
{
    const size_t length = strlen(word);
    *rest = text + length;
    return strncmp(text, word, length) == 0;
}

int form_argument(const struct plan *p, const struct exchanged_member *m, int place,
                  const char *wanted, const char **name, size_t *length)
{
    const char *last = NULL, *rest;
    size_t last_length = 0;
    int places = 0, named = 0;
    for (size_t i = m->first; i < m->first + m->count; i++) {
        if (!form_begins(form_below(plumb_run_record(p->run, i)), "input.", &rest))
            continue;
        const size_t n = strcspn(rest, ".");
        if (last && n == last_length && memcmp(last, rest, n) == 0)
            continue;
        last = rest;
        last_length = n;
        *name = rest;
        *length = n;
        if (isdigit((unsigned char)*rest)) {
            const long number = strtol(rest, NULL, 10);
            places = number < INT_MAX ? (int)number + 1 : INT_MAX;
            if (number == place)
                return place;
        } else {
            if (strlen(wanted) == n && memcmp(wanted, rest, n) == 0)
                return places + named;
            named++;
        }
    }
    return -1;
}

/* Records of tensors under "input.NAME" or "output.N", with *list set when they are in a list. */
static size_t *tensors_under(struct plan *p, const struct exchanged_member *m, const char *path,
                             size_t *count, bool *list)
{
    size_t *out = arena_array(p->arena, m->count + 1, sizeof *out);
    const char *rest;
    *count = 0;
    *list = false;
    p->failed |= !out;
    for (size_t i = m->first; out && i < m->first + m->count; i++) {
        const struct plumb_record *record = plumb_run_record(p->run, i);
        if (!form_begins(form_below(record), path, &rest) || (*rest && *rest != '.') ||
            !record->recorded->tensor)
            continue;
        *list |= *rest == '.';
        out[(*count)++] = i;
    }
    return out;
}

struct given inputs_of(struct plan *p, const struct exchanged_member *m, const struct form *form)
{
    struct given out = {0};
    const char *name;
    size_t length;
    if (form->in == NO_PLACE || form_argument(p, m, form->in, form->in_name, &name, &length) < 0)
        return out;
    const char *path = arena_printf(p->arena, "input.%.*s", (int)length, name);
    p->failed |= !path;
    if (path)
        out.records = tensors_under(p, m, path, &out.count, &out.list);
    return out;
}

struct given outputs_of(struct plan *p, const struct exchanged_member *m, const struct form *form,
                        int *number)
{
    struct given out = {0};
    const char *name;
    size_t length;
    *number = form->out == RETURNED ? 0
              : form->out == NO_PLACE
                  ? -1
                  : form_argument(p, m, form->out, form->out_name, &name, &length);
    if (*number < 0)
        return out;
    const char *path = arena_printf(p->arena, "output.%d", *number);
    p->failed |= !path;
    if (path)
        out.records = tensors_under(p, m, path, &out.count, &out.list);
    return out;
}

static bool has_word(const char *text, const char *word)
{
    for (; *text; text++) {
        size_t k = 0;
        while (word[k] && toupper((unsigned char)text[k]) == word[k])
            k++;
        if (!word[k])
            return true;
    }
    return false;
}

const char *form_op(const struct plan *p, const struct exchanged_member *m, const struct form *form,
                    enum exchanged_op *op)
{
    static const struct {
        const char *word;
        enum exchanged_op op;
    } ops[] = {{"AVG", EXCHANGED_MEAN}, {"PRODUCT", EXCHANGED_PRODUCT}, {"MIN", EXCHANGED_MIN},
               {"MAX", EXCHANGED_MAX},  {"PREMUL", EXCHANGED_COPY},     {"SUM", EXCHANGED_SUM}};
    static const char unknown[] = "plumb does not compute this reduction";
    const char *name = "", *rest;
    size_t length = 0;
    *op = EXCHANGED_SUM;
    if (form_argument(p, m, form->how, form->how_name, &name, &length) < 0)
        return NULL;
    for (size_t i = m->first; i < m->first + m->count; i++) {
        const struct plumb_record *record = plumb_run_record(p->run, i);
        if (!form_begins(form_below(record), "input.", &rest) || strlen(rest) != length ||
            memcmp(rest, name, length) != 0)
            continue;
        const char *value = record->recorded->value;
        for (size_t k = 0; value && k < sizeof ops / sizeof *ops; k++)
            if (has_word(value, ops[k].word)) {
                *op = ops[k].op;
                return *op == EXCHANGED_COPY ? unknown : NULL;
            }
        if (!record->recorded->type) /* None is the default */
            return NULL;
        return value && recorded_hides(value, "")
                   ? "of its reduction only an address in memory was recorded"
                   : unknown;
    }
    return NULL;
}
