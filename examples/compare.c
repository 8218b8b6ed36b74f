/* Compares two runs with libplumb and prints the rows that fail:
 *
 *     cc compare.c $(pkg-config --cflags --libs plumb) -o compare && ./compare TARGET GOLDEN */
#include <plumb/compare.h>

int main(int argc, char **argv)
{
    struct plumb_run *target = NULL, *golden = NULL;
    struct plumb_comparison result = {0};
    struct plumb_compare_options options = {.reasons = true}; /* the rest as `plumb compare` does */
    struct plumb_error err;
    char text[800];

    enum plumb_code code = plumb_run_open(&target, argc > 1 ? argv[1] : "", &err);
    if (!code)
        code = plumb_run_open(&golden, argc > 2 ? argv[2] : "", &err);
    if (!code)
        code = plumb_compare(&result, target, golden, &options, &err);
    if (!code) {
        plumb_table_keep_severity(result.table, PLUMB_FAILED);
        code = plumb_table_print(result.table, PLUMB_TABLE_MARKDOWN, NULL, stdout, &err);
    }
    if (code)
        fprintf(stderr, "compare: %s\n", plumb_error_text(&err, text, sizeof text));
    else
        printf("\n%s", result.closing);

    size_t bad = result.failed + result.unmatched + result.unreadable;
    plumb_comparison_free(&result);
    plumb_run_free(target);
    plumb_run_free(golden);
    return code ? 2 : bad > 0;
}
