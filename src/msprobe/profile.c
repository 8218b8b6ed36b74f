/* The profile of msProbe for the pre-check: which calls it takes, how it runs them, and what of
 * them it compares. The larger parts are in files of their own. */
#include "msprobe/profile.h"
#include "msprobe/api_names.h"

#include <string.h>

/* What it cannot call, or calls without looking at what comes back. */
static enum select_outcome choose(struct csv_cell prefix, struct csv_cell api, const char **reason)
{
    static const char *const prefixes[] = {"Functional", "Tensor", "Torch"};
    if (precision_is_text(prefix, "VF")) {
        *reason = "not run: these rules do not execute functions of torch._VF";
        return SELECT_UNRUN;
    }
    if (precision_is_text(prefix, "Aten")) {
        *reason = "these rules do not check operators of torch.ops.aten";
        return SELECT_REFUSED;
    }
    if (precision_is_text(prefix, "NPU")) {
        *reason = "these rules check operators of torch_npu only where torch_npu is installed";
        return SELECT_REFUSED;
    }
    char name[128];
    *reason = "not on the list of APIs that these rules check";
    if (api.length >= sizeof name)
        return SELECT_REFUSED;
    memcpy(name, api.text, api.length);
    name[api.length] = '\0';
    for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
        if (precision_is_text(prefix, prefixes[i]) && api_name_listed(prefixes[i], name)) {
            *reason = NULL;
            return SELECT_RUN;
        }
    }
    return SELECT_REFUSED;
}

static const struct precheck_selecting selecting = {
    .knows = api_name_listed_anywhere,
    .choose = choose,
    .formula = SELECT_ABORT,
    .repeats_by_objects = true,
};

static const char *no_backward(const char *api)
{
    if (strcmp(api, "repeat_interleave") == 0)
        return "no backward of repeat_interleave under these rules";
    if (strcmp(api, "masked_select") == 0)
        return "no backward of masked_select under these rules";
    return NULL;
}

/* A tuple has a backward only where one output is known to carry it. */
static bool tuple_has_backward(const char *api)
{
    return strcmp(api, "topk") == 0 || strcmp(api, "npu_fusion_attention") == 0;
}

static const struct precheck_running running = {
    .widened = true,
    .benchmark_forms = true,
    .first_gradient = true,
    .all_or_nothing = true,
    .no_backward = no_backward,
    .tuple_has_backward = tuple_has_backward,
};

static size_t n_compared(const char *api, size_t n_outputs)
{
    return strcmp(api, "npu_fusion_attention") == 0 ? 1 : n_outputs;
}

static const struct precheck_comparing comparing = {
    .outputs_only = true,
    .needs_all_outputs = true,
    .n_compared = n_compared,
    .dropout_by_zeros = true,
    .skip_speaks = true,
};

const struct precheck_profile profile_msprobe = {
    .name = "msprobe",
    .standards = &msprobe_standards,
    .values = &msprobe_values,
    .select = &selecting,
    .run = &running,
    .compare = &comparing,
    .judge = &msprobe_judging,
    .files = &msprobe_dialect,
    .precision = &msprobe_precision,
};
