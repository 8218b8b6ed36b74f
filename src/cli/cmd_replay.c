/* plumb replay: a saved failure of the online check, run again. */
#define _GNU_SOURCE
#include "cli/cli.h"
#include "plumb/guard.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct replay_options {
    struct cli_view view;
    const char *path, *device, *pytest;
    int64_t worst;
};

static void say_verdict(const char *who, const struct plumb_guard_verdict *verdict)
{
    char what[80];
    snprintf(what, sizeof what, "output %zu", verdict->found.output);
    if (*verdict->label)
        snprintf(what, sizeof what, "%s", verdict->label);
    if (verdict->found.fault == PLUMB_FAULT_NONE)
        printf("%s  pass", who);
    else if (verdict->found.fault == PLUMB_FAULT_NOT_CLOSE)
        printf("%s  FAIL%s%s", who, *verdict->label ? "  " : "", verdict->label);
    else
        printf("%s  FAIL  %s, %s: %s", who, what, plumb_fault_name(verdict->found.fault),
               verdict->found.message);
    if (verdict->found.fault <= PLUMB_FAULT_NOT_CLOSE) {
        printf("  max_abs %.6e, max_rel %.6e", fabs(verdict->found.max_abs),
               fabs(verdict->found.max_rel));
        if (!isnan(verdict->found.max_ulp))
            printf(", %.6g ULPs", verdict->found.max_ulp);
    }
    printf("\n");
}

static enum plumb_code say_worst(const struct plumb_replay *replay, const struct cli_view *view,
                                 struct plumb_error *err)
{
    if (!replay->worst || !plumb_table_rows(replay->worst))
        return PLUMB_OK;
    if (!cli_is_machine_format(view->format))
        printf("\nworst elements of output %zu:\n", replay->recorded.found.output);
    return cli_show(replay->worst, view, err);
}

static void say_people(const struct replay_options *options, const struct plumb_replay *replay)
{
    const struct plumb_guard_verdict *verdict = &replay->recorded;
    printf("%s, |a-b| <= %g + %g*|b|\n", replay->op, verdict->found.atol, verdict->found.rtol);
    say_verdict("saved kernel output ", verdict);
    char name[64];
    snprintf(name, sizeof name, "%-20s", options->device);
    if (replay->device_error)
        printf("%s  not run: %s\n", name, replay->device_error);
    else
        say_verdict(name, &replay->device);
}

/* A Python string of any path. */
static void put_python(FILE *out, const char *text)
{
    fputc('\'', out);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        if (*c == '\'' || *c == '\\')
            fprintf(out, "\\%c", *c);
        else if (*c < 0x20)
            fprintf(out, "\\x%02x", *c);
        else
            fputc(*c, out);
    }
    fputc('\'', out);
}

/* How the test finds the failure: from the folder that the test lies in where both have a folder in
 * common, so that they can be moved together; both paths are absolute, `test` is a file that is
 * there. */
static void put_failure(FILE *out, const char *failure, const char *test)
{
    size_t common = 0; /* what both begin with, up to a slash and with it */
    for (size_t k = 0; failure[k] && failure[k] == test[k]; k++)
        if (failure[k] == '/')
            common = k + 1;
    if (common <= 1) { /* nothing but the root */
        put_python(out, failure);
        return;
    }
    fputs("os.path.join(os.path.dirname(os.path.abspath(__file__))", out);
    for (const char *c = test + common; (c = strchr(c, '/')); c++)
        fputs(", \"..\"", out);
    fputs(", ", out);
    put_python(out, failure + common);
    fputs(")", out);
}

/* A test of the kernel that is registered now, with the inputs of the failure. */
static int write_test(const struct replay_options *options)
{
    char *path = realpath(options->path, NULL), *test = NULL;
    FILE *out = path ? fopen(options->pytest, "wx") : NULL;
    if (out)
        test = realpath(options->pytest, NULL);
    if (!test) {
        cli_message("%s: cannot be written, or is there already", options->pytest);
        if (out)
            fclose(out);
        free(path);
        return CLI_UNUSABLE;
    }
    fputs("\"\"\"Made by plumb replay: an operator call that once failed the precision "
          "check.\"\"\"\n\n"
          "import os\n"
          "import unittest\n\n"
          "import plumb.guard\n\n"
          "FAILURE = ",
          out);
    put_failure(out, path, test);
    fputs("\n\n\nclass Replay(unittest.TestCase):\n"
          "    def test_call(self) -> None:\n"
          "        verdict = plumb.guard.replay(FAILURE)\n"
          "        self.assertTrue(verdict[\"passed\"], verdict[\"message\"])\n\n\n"
          "if __name__ == \"__main__\":\n"
          "    unittest.main()\n",
          out);
    const bool fine = fclose(out) == 0;
    free(path);
    free(test);
    if (!fine)
        cli_message("%s: cannot be written", options->pytest);
    else
        printf("wrote %s: runs the call with the kernel that is registered then\n",
               options->pytest);
    return fine ? CLI_OK : CLI_UNUSABLE;
}

static int run_replay(const void *context)
{
    const struct replay_options *options = context;
    struct plumb_replay replay;
    struct plumb_error err = {0};
    enum plumb_code code =
        plumb_replay_run(options->path, options->device, (size_t)options->worst, &replay, &err);
    int exit_code = CLI_UNUSABLE;
    if (!code) {
        exit_code = replay.recorded.found.fault == PLUMB_FAULT_NONE ? CLI_OK : CLI_BAD;
        if (!cli_is_machine_format(options->view.format))
            say_people(options, &replay);
        code = say_worst(&replay, &options->view, &err);
    }
    plumb_replay_destroy(&replay);
    if (code) {
        cli_report(&err);
        return CLI_UNUSABLE;
    }
    if (options->pytest && write_test(options) != CLI_OK)
        return CLI_UNUSABLE;
    return exit_code;
}

static const struct args_option arguments[] = {
    {.names = {"FAILURE"},
     .kind = ARGS_PATH,
     .arity = ARGS_ONE,
     .offset = offsetof(struct replay_options, path),
     .help = "folder of a saved failure, or the dump.json in it"},
    {.names = {"--device"},
     .kind = ARGS_TEXT,
     .arity = ARGS_ONE,
     .offset = offsetof(struct replay_options, device),
     .metavar = "NAME",
     .initial = "cpu",
     .help = "what runs the call now"},
    {.names = {"--worst"},
     .kind = ARGS_INT,
     .arity = ARGS_ONE,
     .offset = offsetof(struct replay_options, worst),
     .metavar = "N",
     .initial = "10",
     .min = 0,
     .max = 100000,
     .help = "show this many elements with the largest errors"},
    {.names = {"--pytest"},
     .kind = ARGS_PATH,
     .arity = ARGS_ONE,
     .offset = offsetof(struct replay_options, pytest),
     .metavar = "FILE",
     .help = "also write a unit test that runs the call in PyTorch"},
    {.names = {NULL}},
};

static const struct args_set sets[] = {{"Arguments", arguments},
                                       {"The table", cli_view_options},
                                       {"Common options", cli_common_options},
                                       {NULL, NULL}};

static const struct args_example examples[] = {
    {"plumb replay ~/.plumb/precision.failures/mm.0", "is the saved output really wrong?"},
    {"plumb replay --pytest test_mm.py mm.0", "keep it as a unit test of the kernel"},
    {NULL, NULL},
};

const struct args_command cmd_replay = {
    .name = "replay",
    .summary = "repeat a failure that the online check saved",
    .usage = "FAILURE [options]",
    .about = "Computes the reference of a saved operator call again, in float64, and compares the "
             "output that the kernel gave with it; then runs the call on a device and compares "
             "that too. Where plumb has no such operator, or something other than the outputs was "
             "judged, the reference that was saved is used.",
    .sets = sets,
    .examples = examples,
    .exits = "0 when the saved output is within tolerance\n"
             "1 when it is not, or is of another type, or the kernel changed an input\n"
             "2 when there is nothing to replay",
    .size = sizeof(struct replay_options),
    .run = run_replay,
};
