/* Settings of the pre-check from a file: config.json (its section "acc_check") or config.yaml. */
#ifndef PRECHECK_CONFIG_H
#define PRECHECK_CONFIG_H

#include "base/arena.h"
#include "plumb/error.h"

struct check_names {
    const char *const *names; /* each once */
    size_t count;
};

enum { CHECK_MAX_UNKNOWN = 8 };

struct check_config {
    struct check_names white_list, black_list; /* bare API names: "conv2d", "linalg.inv" */
    struct check_names quantization_api_list;
    const char *error_data_path;
    unsigned precision;                     /* decimals of numbers in the CSV files */
    const char *unknown[CHECK_MAX_UNKNOWN]; /* keys that are no settings, the first few */
    size_t n_unknown;
};

enum { CHECK_MAX_PRECISION = 20 };

/* No lists, "./", 14. */
void check_config_init(struct check_config *config);

/* Reads a file: YAML when its name ends in .yaml or .yml, else JSON. What it does not set is as
 * check_config_init has it; keys that are no settings are listed. Everything lives in the
 * arena. PLUMB_E_FORMAT, with the line or byte, for values of the wrong kind and for JSON without
 * the section. Whether names and paths exist is not looked at. */
enum plumb_code check_config_read(struct check_config *config, const char *path,
                                  struct arena *arena, struct plumb_error *err);

/* The same for text in memory. */
enum plumb_code check_config_json(struct check_config *config, const void *bytes, size_t size,
                                  struct arena *arena, struct plumb_error *err);
enum plumb_code check_config_yaml(struct check_config *config, const void *bytes, size_t size,
                                  struct arena *arena, struct plumb_error *err);

#endif
