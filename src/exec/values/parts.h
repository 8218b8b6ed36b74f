/* Making values: what the files of this room share. */
#ifndef VALUES_PARTS_H
#define VALUES_PARTS_H

#include "exec/values/values.h"

/* ---- Random bits ----------------------------------------------------------------------------- */

/* The key of one tensor: of its call ("Torch.cat.0") and position ("forward.input.0.1"). */
uint64_t value_key(uint64_t seed, const char *call, const char *position);

/* 64 bits for every index: SplitMix64, its counter taken literally. */
static inline uint64_t value_bits(uint64_t key, uint64_t index)
{
    uint64_t z = key + (index + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* A stream of 32-bit draws: of mt, or when that is NULL, of a key. */
struct value_draws {
    struct mt19937 *mt;
    uint64_t key, next;
};
uint32_t value_draw(struct value_draws *draws);

/* ---- Storing numbers as elements ------------------------------------------------------------- */

struct encoder {
    enum plumb_dtype dtype;
    unsigned n;        /* of the types of 8 and 4 bits: the finite values, in order */
    double value[256]; /* and between which numbers they are nearest: */
    double limit[256]; /* value[i] is nearest up to limit[i] */
    uint8_t code[256];
    uint8_t nan, inf, minus_inf; /* codes; of the largest value where the type has none */
};

/* For float and complex types, whose parts count as numbers. */
void encoder_init(struct encoder *encoder, enum plumb_dtype dtype);

/* Stores n numbers from number `at` on, rounded to nearest even. Beyond the largest value of an
 * 8-bit type is its largest value. */
void encoder_put(const struct encoder *encoder, void *data, uint64_t at, size_t n,
                 const double *numbers);
void encoder_put_one(const struct encoder *encoder, void *data, uint64_t at, double number);

/* The same for float32, float16 and bfloat16, from float32; and just the rounding. */
void values_put_floats(enum plumb_dtype dtype, void *data, uint64_t at, size_t n, const float *x);
float values_round_float(enum plumb_dtype dtype, float x);

/* Integers and bool: the low bits of n values, from element `at` on. */
void values_put_ints(enum plumb_dtype dtype, void *data, uint64_t at, size_t n,
                     const uint64_t *values);

/* ---- Limits ---------------------------------------------------------------------------------- */

struct value_limits {
    double lo, hi;        /* float: values of the type, lo <= hi, finite or equal; complex: of the
                             absolute value */
    uint64_t first, span; /* integer and bool: first, first + 1, ..., first + span, modulo 2^64 */
    bool nan, inf, minus_inf; /* float: there were such values too */
};

/* What was recorded, in terms of the type (which need not be the recorded one): rounded inwards,
 * cut to what the type holds; [-1, 1], or [0, 1] for integers, where nothing was recorded. */
enum plumb_code values_limits(const struct case_tensor *tensor, enum plumb_dtype dtype,
                              struct value_limits *out, struct plumb_error *err);

/* ---- Filling --------------------------------------------------------------------------------- */

struct fill {
    enum plumb_dtype dtype;
    uint64_t count; /* more than 0 */
    uint64_t row;   /* size of the last dimension, or 1 */
    void *data;
    uint64_t key;
    struct value_limits limits;
    bool specials; /* adversarial: the operator is defined for any number, NaN and infinity */
};

/* All elements; then the first becomes lo, the last hi, and recorded NaN and infinities are put in.
 * Complex tensors are uniform whatever is asked for. */
void fill_values(const struct fill *fill, enum input_kind inputs);

/* The middle of that. */
void fill_uniform(const struct fill *fill, const struct encoder *encoder);
void fill_normal(const struct fill *fill, const struct encoder *encoder);
void fill_adversarial(const struct fill *fill, const struct encoder *encoder);

/* ---- Real data ------------------------------------------------------------------------------- */

/* Reads the one tensor of `folder`/`name`, a .pt or .npy file that is really in that folder, into
 * the arena: dense, in this machine's byte order, at most max_bytes. */
enum plumb_code real_data_load(const char *folder, const char *name, uint64_t max_bytes,
                               struct arena *arena, struct plumb_tensor *out,
                               struct plumb_error *err);

/* ---- The tensors of a call ------------------------------------------------------------------- */

/* What holds for all tensors of a call. */
struct maker {
    const struct check_case *from;
    const struct generate_options *options;
    const struct value_profile *profile;
    struct arena *arena;
    struct plumb_error *err;
    uint64_t bytes_left;
    bool gradient;
    bool results; /* not arguments: what cannot be had becomes an argument that says so */
};

/* One argument on the way. */
struct place {
    const char *position; /* "forward.input.0.1" */
    bool need_grad;
    bool first, second; /* the first or second positional argument itself */
};

/* Puts the argument's position before the message, and returns the code. */
enum plumb_code maker_blame(struct plumb_error *err, const char *position, enum plumb_code code);

bool maker_api_is(const struct maker *maker, const char *api);

/* A tensor as the options want it, loaded or generated. */
enum plumb_code maker_tensor(struct maker *maker, const struct place *at,
                             const struct case_tensor *info, struct plumb_arg *out);

/* What fused attention calls compressed: true above the diagonal of 2048 x 2048. */
enum plumb_code maker_causal_mask(struct maker *maker, const char *position, struct plumb_arg *out);

#endif
