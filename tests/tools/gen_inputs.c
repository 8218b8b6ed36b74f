#define _GNU_SOURCE
/* Generates the inputs of calls, for tests that know the right values:
 *
 *     gen_inputs DUMP.json FOLDER [msprobe] [mt] [real] [seed=N] [normal|adversarial] < commands
 *
 * Commands, a line each: "forward NAME", "grad NAME", "draw N" (throw N draws of mt away). The
 * answer to each is a line of JSON: {"args": [...], "kwargs": {...}}, {"grad": ...} or {"error":
 * "..."}. The bytes of tensors go into files of the folder. */
#include "exec/values/values.h"
#include "msprobe/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct tool {
    struct case_file *cases;
    struct generate_options options;
    struct mt19937 mt;
    const char *folder;
    unsigned files;
};

static void print_text(const char *text)
{
    putchar('"');
    for (const char *p = text; *p; p++)
        printf(*p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
    putchar('"');
}

static void print_tensor(struct tool *tool, const struct plumb_tensor *t, bool requires_grad)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%u.bin", tool->folder, tool->files);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(t->data, 1, (size_t)plumb_tensor_bytes(t), file) != plumb_tensor_bytes(t) ||
        fclose(file)) {
        perror(path);
        exit(2);
    }
    printf("{\"file\": \"%u.bin\", \"dtype\": \"%s\", \"requires_grad\": %s, \"shape\": [",
           tool->files++, plumb_dtype_info(t->dtype)->name, requires_grad ? "true" : "false");
    for (unsigned i = 0; i < t->rank; i++)
        printf(i ? ", %lld" : "%lld", (long long)t->shape[i]);
    printf("]}");
}

static void print_arg(struct tool *tool, const struct plumb_arg *arg)
{
    switch (arg->kind) {
    case PLUMB_ARG_NONE:
        printf("null");
        return;
    case PLUMB_ARG_TENSOR:
        print_tensor(tool, arg->tensor, arg->requires_grad);
        return;
    case PLUMB_ARG_BOOL:
        printf(arg->integer ? "true" : "false");
        return;
    case PLUMB_ARG_INT:
        printf("%lld", (long long)arg->integer);
        return;
    case PLUMB_ARG_FLOAT:
        printf("%.17g", arg->number);
        return;
    case PLUMB_ARG_TEXT:
    case PLUMB_ARG_DEVICE:
        print_text(arg->text);
        return;
    case PLUMB_ARG_DTYPE:
        print_text(plumb_dtype_info(arg->dtype)->name);
        return;
    case PLUMB_ARG_LIST:
    case PLUMB_ARG_SLICE:
        putchar('[');
        for (size_t i = 0; i < arg->n_items; i++) {
            printf(i ? ", " : "");
            print_arg(tool, &arg->items[i]);
        }
        putchar(']');
        return;
    case PLUMB_ARG_ELLIPSIS:
        printf("\"...\"");
        return;
    default:
        printf("{\"other\": true}");
    }
}

static void print_call(struct tool *tool, const struct plumb_call *call)
{
    printf("{\"args\": [");
    for (size_t i = 0; i < call->n_args; i++) {
        printf(i ? ", " : "");
        print_arg(tool, &call->args[i]);
    }
    printf("], \"kwargs\": {");
    for (size_t i = 0; i < call->n_kwargs; i++) {
        printf(i ? ", " : "");
        print_text(call->kwargs[i].name);
        printf(": ");
        print_arg(tool, &call->kwargs[i].value);
    }
    printf("}}\n");
}

static size_t find(const struct tool *tool, const char *name)
{
    for (size_t i = 0; i < case_count(tool->cases); i++)
        if (strcmp(case_place(tool->cases, i)->name, name) == 0)
            return i;
    fprintf(stderr, "no call %s\n", name);
    exit(2);
}

static void answer(struct tool *tool, const char *verb, const char *name)
{
    if (strcmp(verb, "draw") == 0) {
        for (long n = atol(name); n > 0; n--)
            mt19937_next(&tool->mt);
        printf("{}\n");
        return;
    }
    struct arena arena = {0};
    struct plumb_error err;
    struct check_case from;
    struct plumb_call call;
    const struct plumb_tensor *const *grads;
    size_t n;
    enum plumb_code code = case_parse(tool->cases, find(tool, name), &arena, &from, &err);
    if (!code && strcmp(verb, "grad") == 0) {
        code = generate_grads(&from, &tool->options, &arena, &grads, &n, &err);
        if (!code && (n == 0 || !grads[0]))
            code = plumb_fail(&err, PLUMB_E_FORMAT, "no first gradient");
        if (!code) {
            printf("{\"grad\": ");
            print_tensor(tool, grads[0], false);
            printf("}\n");
        }
    } else if (!code) {
        code = generate_call(&from, &tool->options, &arena, &call, &err);
        if (!code)
            print_call(tool, &call);
    }
    if (code) {
        char text[900];
        printf("{\"error\": ");
        print_text(plumb_error_text(&err, text, sizeof text));
        printf("}\n");
    }
    arena_free(&arena);
}

int main(int argc, char **argv)
{
    struct tool tool = {.folder = argc > 2 ? argv[2] : "."};
    struct plumb_error err;
    if (argc < 3 || case_file_open(argv[1], &tool.cases, &err)) {
        fprintf(stderr, "%s\n", argc < 3 ? "DUMP.json FOLDER" : err.message);
        return 2;
    }
    for (int i = 3; i < argc; i++) {
        if (strcmp(argv[i], "msprobe") == 0)
            tool.options.profile = &msprobe_values;
        if (strcmp(argv[i], "mt") == 0)
            tool.options.mt = &tool.mt, tool.options.rng = &msprobe_values;
        if (strcmp(argv[i], "real") == 0)
            tool.options.data_dir = case_data_dir(tool.cases);
        if (strncmp(argv[i], "seed=", 5) == 0)
            tool.options.seed = strtoull(argv[i] + 5, NULL, 0);
        if (strcmp(argv[i], "normal") == 0)
            tool.options.inputs = INPUTS_NORMAL;
        if (strcmp(argv[i], "adversarial") == 0)
            tool.options.inputs = INPUTS_ADVERSARIAL;
    }
    mt19937_init(&tool.mt, 1234);
    char verb[16], name[4200];
    while (scanf("%15s %4199s", verb, name) == 2)
        answer(&tool, verb, name);
    case_file_close(tool.cases);
    return 0;
}
