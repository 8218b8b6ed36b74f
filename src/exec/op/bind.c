/* Reading signatures, and fitting the arguments of a call to them. */
#include "exec/op/bind.h"

#include "base/plain.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Reading a signature --------------------------------------------------------------------- */

struct type_word {
    const char *word;
    enum param_type type;
};

static const struct type_word type_words[] = {
    {"Tensor", PARAM_TENSOR}, {"Operand", PARAM_OPERAND}, {"number", PARAM_NUMBER},
    {"int", PARAM_INT},       {"bool", PARAM_BOOL},       {"float", PARAM_FLOAT},
    {"str", PARAM_STR},       {"dtype", PARAM_DTYPE},     {"any", PARAM_ANY},
};

static const char *skip_blanks(const char *s)
{
    while (*s == ' ')
        s++;
    return s;
}

/* From the type of an item to that of a list; false when there are no lists of it. */
static bool list_type(enum param_type *type)
{
    switch (*type) {
    case PARAM_TENSOR:
        *type = PARAM_TENSORS;
        return true;
    case PARAM_INT:
        *type = PARAM_INTS;
        return true;
    case PARAM_FLOAT:
    case PARAM_BOOL:
        *type = PARAM_FLOATS;
        return true;
    default:
        return false;
    }
}

static const char *read_type(const char *s, struct op_param *param)
{
    size_t length = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    size_t k = 0;
    while (k < sizeof type_words / sizeof *type_words &&
           (strlen(type_words[k].word) != length || memcmp(type_words[k].word, s, length) != 0))
        k++;
    if (k == sizeof type_words / sizeof *type_words)
        return NULL;
    param->type = type_words[k].type;
    s += length;
    param->none_items = s[0] == '?' && s[1] == '[';
    s += param->none_items;
    if (*s == '[') {
        if (!list_type(&param->type))
            return NULL;
        char *end;
        param->expand = (unsigned)strtoul(s + 1, &end, 10);
        if (*end != ']')
            return NULL;
        s = end + 1;
    }
    if (strncmp(s, "...", 3) == 0) {
        param->rest = true;
        s += 3;
    }
    if (*s == '?') {
        param->optional = true;
        s++;
    }
    return s;
}

/* Reads one signature of the schema at s; NULL when it is malformed (a mistake in a table, which a
 * test finds). */
static const char *read_signature(const char *s, struct op_signature *out)
{
    *out = (struct op_signature){0};
    s = strchr(s, '(');
    if (!s)
        return NULL;
    bool keyword_only = false;
    for (s = skip_blanks(s + 1); *s && *s != ')'; s = skip_blanks(s)) {
        if (*s == ',') {
            s++;
            continue;
        }
        if (*s == '*') {
            keyword_only = true;
            s++;
            continue;
        }
        if (out->n == OP_MAX_PARAMS)
            return NULL;
        struct op_param *param = &out->params[out->n++];
        param->keyword_only = keyword_only;
        s = read_type(s, param);
        if (!s || *s != ' ')
            return NULL;
        s = param->names = skip_blanks(s);
        while (isalnum((unsigned char)*s) || *s == '_' || *s == '|')
            s++;
        param->names_length = (size_t)(s - param->names);
        if (*s == '=') {
            param->given = ++s;
            if (*s == '[')
                s += strcspn(s, "]") + (strchr(s, ']') != NULL);
            else
                s += strcspn(s, ",)");
            param->given_length = (size_t)(s - param->given);
        }
    }
    return *s == ')' ? s + 1 : NULL;
}

static bool has_name(const struct op_param *param, const char *name)
{
    size_t length = strlen(name);
    const char *s = param->names, *end = s + param->names_length;
    while (s < end) {
        const char *bar = memchr(s, '|', (size_t)(end - s));
        size_t n = (size_t)((bar ? bar : end) - s);
        if (n == length && memcmp(s, name, n) == 0)
            return true;
        s += n + 1;
    }
    return false;
}

/* ---- Defaults -------------------------------------------------------------------------------- */

static bool given_is(const struct op_param *param, const char *text)
{
    return param->given_length == strlen(text) &&
           memcmp(param->given, text, param->given_length) == 0;
}

static struct plumb_arg number_arg(const char *text, char **end)
{
    size_t digits = strspn(text, "-0123456789");
    if (strchr(".eE", text[digits]) && text[digits])
        return (struct plumb_arg){.kind = PLUMB_ARG_FLOAT, .number = plain_number(text, end)};
    return (struct plumb_arg){.kind = PLUMB_ARG_INT, .integer = strtoll(text, end, 10)};
}

static bool default_arg(struct op *o, const struct op_param *param, struct plumb_arg *out)
{
    const char *text = param->given;
    *out = (struct plumb_arg){0};
    if (given_is(param, "None"))
        return true;
    if (given_is(param, "True") || given_is(param, "False")) {
        *out = (struct plumb_arg){.kind = PLUMB_ARG_BOOL, .integer = *text == 'T'};
        return true;
    }
    if (*text == '\'') {
        *out = (struct plumb_arg){.kind = PLUMB_ARG_TEXT,
                                  .text = arena_copy(o->arena, text + 1, param->given_length - 2)};
        return out->text != NULL;
    }
    if (*text == '[') {
        struct plumb_arg *items = arena_array(o->arena, param->given_length, sizeof *items);
        if (!items)
            return false;
        *out = (struct plumb_arg){.kind = PLUMB_ARG_LIST, .items = items};
        for (const char *s = text + 1; *s != ']';) {
            char *end;
            items[out->n_items++] = number_arg(s, &end);
            s = end + strspn(end, ", ");
        }
        return true;
    }
    char *end;
    *out = number_arg(text, &end);
    return true;
}

/* ---- Fitting --------------------------------------------------------------------------------- */

static bool is_number(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_FLOAT ||
           arg->kind == PLUMB_ARG_BOOL;
}

static bool is_scalar_tensor(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_TENSOR && arg->tensor->count == 1 &&
           plumb_dtype_info(arg->tensor->dtype)->kind != PLUMB_KIND_COMPLEX;
}

static bool is_integral(const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_TENSOR) {
        enum plumb_kind kind = plumb_dtype_info(arg->tensor->dtype)->kind;
        return arg->tensor->count == 1 && kind != PLUMB_KIND_FLOAT && kind != PLUMB_KIND_COMPLEX;
    }
    return arg->kind == PLUMB_ARG_INT || arg->kind == PLUMB_ARG_BOOL;
}

static bool fits_list(const struct plumb_arg *arg, bool (*fits)(const struct plumb_arg *))
{
    if (arg->kind != PLUMB_ARG_LIST)
        return false;
    for (size_t k = 0; k < arg->n_items; k++)
        if (!fits(&arg->items[k]))
            return false;
    return true;
}

static bool is_tensor(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_TENSOR;
}

static bool is_tensor_or_none(const struct plumb_arg *arg)
{
    return arg->kind == PLUMB_ARG_TENSOR || arg->kind == PLUMB_ARG_NONE;
}

static bool is_int_or_none(const struct plumb_arg *arg)
{
    return is_integral(arg) || arg->kind == PLUMB_ARG_NONE;
}

static bool fits(const struct op_param *param, const struct plumb_arg *arg)
{
    if (arg->kind == PLUMB_ARG_NONE)
        return param->optional || param->type == PARAM_ANY;
    switch (param->type) {
    case PARAM_TENSOR:
        return arg->kind == PLUMB_ARG_TENSOR;
    case PARAM_TENSORS:
        return fits_list(arg, param->none_items ? is_tensor_or_none : is_tensor);
    case PARAM_OPERAND:
        return arg->kind == PLUMB_ARG_TENSOR || is_number(arg) || arg->kind == PLUMB_ARG_COMPLEX;
    case PARAM_NUMBER:
        return is_number(arg) || is_scalar_tensor(arg) || arg->kind == PLUMB_ARG_COMPLEX;
    case PARAM_FLOAT:
        return is_number(arg) || is_scalar_tensor(arg);
    case PARAM_INT:
        return is_integral(arg);
    case PARAM_BOOL:
        return arg->kind == PLUMB_ARG_BOOL || arg->kind == PLUMB_ARG_INT;
    case PARAM_STR:
        return arg->kind == PLUMB_ARG_TEXT;
    case PARAM_DTYPE:
        return arg->kind == PLUMB_ARG_DTYPE;
    case PARAM_INTS:
        return is_integral(arg) || fits_list(arg, is_int_or_none);
    case PARAM_FLOATS:
        return is_number(arg) || fits_list(arg, is_number);
    case PARAM_ANY:
        return true;
    }
    return false;
}

/* Given by name, these say where a result goes, not what it is. */
static bool is_ignored(const char *name)
{
    static const char *const ignored[] = {"device",        "layout", "pin_memory", "memory_format",
                                          "requires_grad", "out",    "generator",  "names"};
    if (name[0] == '_')
        return true;
    for (size_t k = 0; k < sizeof ignored / sizeof *ignored; k++)
        if (strcmp(name, ignored[k]) == 0)
            return true;
    return false;
}

struct misfit {
    char text[200];
};

/* An argument goes by the first of its names. */
static int name_length(const struct op_param *param)
{
    const char *bar = memchr(param->names, '|', param->names_length);
    return (int)(bar ? (size_t)(bar - param->names) : param->names_length);
}

static bool misfit_param(struct misfit *why, const struct op_param *param, const char *what)
{
    snprintf(why->text, sizeof why->text, "argument '%.*s' %s", name_length(param), param->names,
             what);
    return false;
}

static const char *wanted_text(enum param_type type)
{
    static const char *const text[] = {
        [PARAM_TENSOR] = "a tensor",
        [PARAM_TENSORS] = "a list of tensors",
        [PARAM_OPERAND] = "a tensor or a number",
        [PARAM_NUMBER] = "a number",
        [PARAM_INT] = "an int",
        [PARAM_BOOL] = "a bool",
        [PARAM_FLOAT] = "a number",
        [PARAM_STR] = "a str",
        [PARAM_DTYPE] = "a dtype",
        [PARAM_INTS] = "an int or a list of ints",
        [PARAM_FLOATS] = "a number or a list of numbers",
        [PARAM_ANY] = "anything",
    };
    return text[type];
}

/* "argument 'dim' has to be an int or None, not a list that holds a str". */
static bool misfit_type(struct misfit *why, const struct op_param *param,
                        const struct plumb_arg *arg)
{
    const bool lists =
        param->type == PARAM_TENSORS || param->type == PARAM_INTS || param->type == PARAM_FLOATS;
    char detail[60] = "";
    if (arg->kind == PLUMB_ARG_LIST && lists) {
        bool (*item_fits)(const struct plumb_arg *) = param->type == PARAM_INTS     ? is_int_or_none
                                                      : param->type == PARAM_FLOATS ? is_number
                                                      : param->none_items ? is_tensor_or_none
                                                                          : is_tensor;
        size_t k = 0;
        while (k < arg->n_items && item_fits(&arg->items[k]))
            k++;
        if (k < arg->n_items)
            snprintf(detail, sizeof detail, " that holds %s",
                     plumb_arg_kind_text(arg->items[k].kind));
    } else if (arg->kind == PLUMB_ARG_TENSOR) {
        snprintf(detail, sizeof detail, " of %llu %s", (unsigned long long)arg->tensor->count,
                 plumb_dtype_info(arg->tensor->dtype)->name);
    }
    snprintf(why->text, sizeof why->text, "argument '%.*s' has to be %s%s, not %s%s",
             name_length(param), param->names, wanted_text(param->type),
             param->optional ? " or None" : "", plumb_arg_kind_text(arg->kind), detail);
    return false;
}

/* All further positional arguments as one list, unless there is one and it is a list already. */
static bool bind_rest(struct op *o, const struct op_param *param, size_t first,
                      struct op_bound *bound, struct misfit *why)
{
    const struct plumb_call *call = o->call;
    if (call->n_args == first + 1 && call->args[first].kind == PLUMB_ARG_LIST) {
        bound->value = &call->args[first];
    } else {
        bound->arg = (struct plumb_arg){
            .kind = PLUMB_ARG_LIST, .items = call->args + first, .n_items = call->n_args - first};
        bound->value = &bound->arg;
    }
    return fits(param, bound->value) || misfit_type(why, param, bound->value);
}

static bool bind_keywords(const struct plumb_call *call, const struct op_signature *signature,
                          struct op_bound *bound, struct misfit *why)
{
    for (size_t k = 0; k < call->n_kwargs; k++) {
        const struct plumb_kwarg *kwarg = &call->kwargs[k];
        size_t p = 0;
        while (p < signature->n && !has_name(&signature->params[p], kwarg->name))
            p++;
        if (p == signature->n) {
            if (is_ignored(kwarg->name))
                continue;
            snprintf(why->text, sizeof why->text, "there is no argument '%.100s'", kwarg->name);
            return false;
        }
        if (bound[p].value)
            return misfit_param(why, &signature->params[p], "is given twice");
        if (!fits(&signature->params[p], &kwarg->value))
            return misfit_type(why, &signature->params[p], &kwarg->value);
        bound[p].value = &kwarg->value;
    }
    return true;
}

static bool bind_signature(struct op *o, const struct op_signature *signature,
                           struct op_bound *bound, struct misfit *why)
{
    const struct plumb_call *call = o->call;
    size_t next = 0;
    for (size_t p = 0; p < signature->n && next < call->n_args; p++) {
        const struct op_param *param = &signature->params[p];
        if (param->keyword_only)
            break;
        if (param->rest) {
            if (!bind_rest(o, param, next, &bound[p], why))
                return false;
            next = call->n_args;
        } else {
            bound[p].value = &call->args[next++];
            if (!fits(param, bound[p].value))
                return misfit_type(why, param, bound[p].value);
        }
    }
    if (next < call->n_args) {
        snprintf(why->text, sizeof why->text, "%zu positional arguments are more than it takes",
                 call->n_args);
        return false;
    }
    if (!bind_keywords(call, signature, bound, why))
        return false;
    for (size_t p = 0; p < signature->n; p++) {
        const struct op_param *param = &signature->params[p];
        if (bound[p].value)
            continue;
        if (!param->given && !param->optional)
            return misfit_param(why, param, "is missing");
        if (param->given && !default_arg(o, param, &bound[p].arg)) {
            snprintf(why->text, sizeof why->text, "out of memory");
            return false;
        }
        bound[p].value = &bound[p].arg;
    }
    return true;
}

/* "Functional.softmax(" serves only calls with that prefix. */
static bool serves(const char *signature, const char *prefix)
{
    size_t length = strcspn(signature, "(");
    const char *dot = memchr(signature, '.', length);
    if (!dot || islower((unsigned char)signature[0]))
        return true;
    return strlen(prefix) == (size_t)(dot - signature) &&
           strncmp(signature, prefix, (size_t)(dot - signature)) == 0;
}

bool op_bind(struct op *o, const char *schema)
{
    struct misfit why = {"no form of it belongs to this prefix"};
    struct op_signature *signature = arena_alloc(o->arena, sizeof *signature);
    struct op_bound *bound = arena_array(o->arena, OP_MAX_PARAMS, sizeof *bound);
    if (!signature || !bound)
        return op_fail(o, PLUMB_E_NOMEM, "out of memory") != NULL;
    for (const char *s = schema; s && *s; s = strchr(s, '\n'), s += s != NULL) {
        if (!serves(s, o->call->prefix ? o->call->prefix : ""))
            continue;
        if (!read_signature(s, signature))
            return op_fail(o, PLUMB_E_UNSUPPORTED, "%s: malformed signature in the table: %.*s",
                           o->call->name, (int)strcspn(s, "\n"), s) != NULL;
        memset(bound, 0, OP_MAX_PARAMS * sizeof *bound);
        if (bind_signature(o, signature, bound, &why)) {
            o->signature = signature;
            o->bound = bound;
            return true;
        }
    }
    return op_fail(o, PLUMB_E_ARG, "%s: %s", o->call->name, why.text) != NULL;
}

size_t op_param_index(const struct op *o, const char *name)
{
    size_t p = 0;
    while (p < o->signature->n && !has_name(&o->signature->params[p], name))
        p++;
    return p;
}
