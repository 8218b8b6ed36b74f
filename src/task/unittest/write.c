/* Writing the unit tests of a dump. */
#define _GNU_SOURCE
#include "base/map.h"
#include "base/mapped.h"
#include "base/output.h"
#include "plumb/unittest.h"
#include "task/unittest/blacklist.h"
#include "task/unittest/code.h"
#include "task/unittest/folder.h"
#include "task/unittest/module.h"
#include "task/unittest/templates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST_MODULE = 100 };

static enum plumb_code write_file(const char *folder, const char *name, const struct buf *text,
                                  struct plumb_error *err)
{
    char *path = NULL;
    if (text->failed || asprintf(&path, "%s/%s", folder, name) < 0)
        return plumb_no_memory(err);
    enum plumb_code code = output_whole(path, text->data, text->size, false, err);
    free(path);
    return code;
}

/* "aten.add.Tensor" -> "test_aten_add_Tensor.py"; a number makes two that would be the same
 * different, on file systems that do not tell A from a too. */
static const char *module_name(struct map *used, struct arena *arena,
                               const struct call_group *group, size_t position)
{
    struct buf clean = {0};
    const char *name = NULL;
    bool added = false;
    code_clean(&clean, group->op, group->op_length, "", LONGEST_MODULE);
    for (size_t k = position; !clean.failed && !added; k++) {
        name = k == position ? arena_printf(arena, "test_%s.py", clean.data)
                             : arena_printf(arena, "test_%s_%zu.py", clean.data, k);
        char *key = name ? arena_copy(arena, name, strlen(name)) : NULL;
        for (char *c = key; c && *c; c++)
            *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
        if (!key || !map_put(used, key, strlen(key), &added)) {
            name = NULL;
            break;
        }
    }
    buf_free(&clean);
    return name;
}

static enum plumb_code write_modules(struct plumb_unittest_result *out, const struct calls *calls,
                                     const struct blacklist *blacklist, struct plumb_error *err)
{
    enum plumb_code code = PLUMB_OK;
    struct map used = {0};
    struct arena arena = {0};
    struct buf text = {0};
    for (size_t g = 0; g < calls->group_count && !code; g++) {
        const struct call_group *group = &calls->groups[g];
        if (blacklist_has(blacklist, group->op, group->op_length)) {
            out->blacklisted += group->count;
            continue;
        }
        const char *name = module_name(&used, &arena, group, g);
        text.size = 0;
        if (!name || !module_text(&text, calls, group))
            code = plumb_no_memory(err);
        if (!code)
            code = write_file(out->folder, name, &text, err);
        out->tests += group->count;
        out->operators++;
    }
    buf_free(&text);
    map_free(&used);
    arena_free(&arena);
    return code;
}

/* Where the tensors of the dump are, seen from the tests: beside the folder, so that both can be
 * moved, unless the caller chose another place for it. */
static void data_folder(struct buf *text, const char *dump, bool functions, bool chosen)
{
    const char *name = functions ? "dump_tensor_data" : "dump";
    char *path = chosen ? realpath(dump, NULL) : NULL;
    char *slash = path ? strrchr(path, '/') : NULL;
    struct buf data = {0};
    if (slash)
        buf_printf(&data, "%.*s/%s", (int)(slash - path), path, name);
    else
        buf_printf(&data, "../%s", name);
    if (!data.failed)
        code_string(text, data.data, data.size);
    text->failed |= data.failed || (chosen && !slash);
    buf_free(&data);
    free(path);
}

static enum plumb_code write_conftest(const char *folder, const char *dump, bool functions,
                                      const struct plumb_unittest_options *options,
                                      struct plumb_error *err)
{
    static const char *const verdicts[] = {
        [PLUMB_BY_RULES] = "rules", [PLUMB_BY_EXPECTED] = "expected", [PLUMB_BY_BOTH] = "both"};
    struct buf text = {0};
    buf_text(&text, CONFTEST_MARK
             ", on a device and on the CPU.\n\n"
             "    pytest --detail_compare_path=./xpu.csv THIS_FOLDER --seed 42 [--device "
             "cuda]\n\n"
             "Made by plumb jprof. Needs PyTorch and pytest only.\n\"\"\"\n\n"
             "DATA = ");
    data_folder(&text, dump, functions, options->folder != NULL);
    buf_text(&text, "  # the folder of kept tensors, seen from this one\n");
    buf_printf(&text,
               "CPU_INIT = %s  # inputs are made on the CPU, then moved\n"
               "FACTORY = \"%s\"  # load: kept tensors in DATA, where there are any\n"
               "VERDICT = \"%s\"  # what decides, unless pytest is told\n\n",
               options->cpu_init ? "True" : "False", options->random ? "random" : "load",
               verdicts[options->verdict]);
    for (const struct builtin *part = unittest_templates; part->name; part++)
        buf_text(&text, part->text);
    enum plumb_code code = write_file(folder, "conftest.py", &text, err);
    text.size = 0;
    buf_text(&text, SETTINGS_MARK "[pytest]\n");
    if (!code)
        code = write_file(folder, "pytest.ini", &text, err);
    buf_free(&text);
    return code;
}

enum plumb_code plumb_unittest_write(struct plumb_unittest_result *out, const char *dump,
                                     const struct plumb_unittest_options *options,
                                     struct plumb_error *err)
{
    *out = (struct plumb_unittest_result){0};
    struct calls calls = {0};
    struct blacklist blacklist = {0};
    enum plumb_code code =
        blacklist_open(&blacklist, options->blacklist, options->blacklist_file, err);
    if (!code)
        code = calls_open(&calls, dump, err);
    if (!code)
        code = tests_folder(&out->folder, options->folder, dump, err);
    if (code)
        goto out;
    out->unusable = calls.unusable;
    code = write_conftest(out->folder, dump, calls.functions, options, err);
    if (code)
        goto out;
    struct plumb_file_guard guard;
    plumb_file_guard_enter(&guard, &calls.map);
    code = write_modules(out, &calls, &blacklist, err);
    if (plumb_file_guard_leave(&guard)) {
        code = mapped_fail_shrank(err);
        plumb_error_in_file(err, dump);
    }
out:
    calls_close(&calls);
    blacklist_close(&blacklist);
    return code;
}

void plumb_unittest_free(struct plumb_unittest_result *result)
{
    free(result->folder);
    *result = (struct plumb_unittest_result){0};
}
