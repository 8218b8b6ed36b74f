/* What a capture records of a tensor, several times faster than the full statistics: smallest,
 * largest, mean and norm of finite numbers of at most 24 significant bits.
 *
 * Element i of a block goes to lane i % MOMENT_LANES. Its square is exact in float64, so that a fused
 * and a separate multiply-add round alike, and the two versions below deliver the same bits. */
#include "core.h"

#include "metric/dense.h"
#include "metric/exact.h"

#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { MOMENT_LANES = 8, CHUNK = 8 * PLUMB_METRIC_BLOCK };

struct lanes {
    double sum[MOMENT_LANES], squares[MOMENT_LANES];
    float min[MOMENT_LANES], max[MOMENT_LANES];
};

typedef void add_values(const struct kernels *kernels, enum plumb_dtype dtype, const char *data,
                        size_t n, struct lanes *lanes);

struct moments {
    double sum, squares;
    float min, max;
};

/* The definition. data may be anywhere; a block goes through float64. */
static void add_values_c(const struct kernels *kernels, enum plumb_dtype dtype, const char *data,
                         size_t n, struct lanes *lanes)
{
    double x[PLUMB_METRIC_BLOCK];
    const size_t size = plumb_dtype_info(dtype)->bits / 8;
    while (n) {
        const size_t block = n < PLUMB_METRIC_BLOCK ? n : PLUMB_METRIC_BLOCK;
        dense_load(kernels, dtype, data, block, x);
        for (size_t i = 0; i < block; i++) {
            const size_t l = i % MOMENT_LANES;
            const float value = (float)x[i];
            lanes->sum[l] += x[i];
            lanes->squares[l] += x[i] * x[i];
            lanes->min[l] = value < lanes->min[l] ? value : lanes->min[l];
            lanes->max[l] = value > lanes->max[l] ? value : lanes->max[l];
        }
        data += block * size;
        n -= block;
    }
}

#if defined(__x86_64__)
#define AVX2 __attribute__((target("avx2,fma,f16c")))

AVX2 static inline __m256 load(enum plumb_dtype dtype, const char *data)
{
    if (dtype == PLUMB_F32)
        return _mm256_loadu_ps((const float *)(const void *)data);
    const __m128i halves = _mm_loadu_si128((const __m128i *)(const void *)data);
    if (dtype == PLUMB_F16)
        return _mm256_cvtph_ps(halves);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}

AVX2 static void add_values_avx2(const struct kernels *kernels, enum plumb_dtype dtype,
                                 const char *data, size_t n, struct lanes *lanes)
{
    const size_t step = MOMENT_LANES * plumb_dtype_info(dtype)->bits / 8;
    __m256d sum_low = _mm256_loadu_pd(lanes->sum), sum_high = _mm256_loadu_pd(lanes->sum + 4);
    __m256d squares_low = _mm256_loadu_pd(lanes->squares);
    __m256d squares_high = _mm256_loadu_pd(lanes->squares + 4);
    __m256 min = _mm256_loadu_ps(lanes->min), max = _mm256_loadu_ps(lanes->max);
    for (; n >= MOMENT_LANES; n -= MOMENT_LANES, data += step) {
        const __m256 x = load(dtype, data);
        const __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(x));
        const __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(x, 1));
        sum_low = _mm256_add_pd(sum_low, low);
        sum_high = _mm256_add_pd(sum_high, high);
        squares_low = _mm256_fmadd_pd(low, low, squares_low);
        squares_high = _mm256_fmadd_pd(high, high, squares_high);
        min = _mm256_min_ps(x, min);
        max = _mm256_max_ps(x, max);
    }
    _mm256_storeu_pd(lanes->sum, sum_low);
    _mm256_storeu_pd(lanes->sum + 4, sum_high);
    _mm256_storeu_pd(lanes->squares, squares_low);
    _mm256_storeu_pd(lanes->squares + 4, squares_high);
    _mm256_storeu_ps(lanes->min, min);
    _mm256_storeu_ps(lanes->max, max);
    add_values_c(kernels, dtype, data, n, lanes);
}
#endif

static double total(const double *lanes)
{
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) +
           ((lanes[4] + lanes[5]) + (lanes[6] + lanes[7]));
}

/* True when its elements lie without gaps, in whatever order: the sums do not depend on it. */
static bool fills_memory(const struct plumb_tensor *tensor)
{
    if (tensor->dense)
        return true;
    bool used[PLUMB_MAX_RANK] = {false};
    int64_t expected = 1;
    for (unsigned found = 0; found < tensor->rank; found++) {
        unsigned i = 0;
        while (i < tensor->rank &&
               (used[i] || (tensor->shape[i] != 1 && tensor->stride[i] != expected)))
            i++;
        if (i == tensor->rank)
            return false;
        used[i] = true;
        expected *= tensor->shape[i];
    }
    return true;
}

/* On the caller's thread: one core reads memory as fast as it comes, and those of a training step
 * are busy. */
static struct moments measure(const struct plumb_tensor *tensor)
{
    const struct kernels kernels = kernels_current();
    const size_t size = plumb_dtype_info(tensor->dtype)->bits / 8;
    add_values *add = add_values_c;
#if defined(__x86_64__)
    if (strcmp(kernels.name, "avx2") == 0)
        add = add_values_avx2;
#endif
    struct exact sum = {0}, squares = {0};
    struct moments all = {.min = INFINITY, .max = -INFINITY};
    for (uint64_t at = 0; at < tensor->count; at += CHUNK) {
        struct lanes lanes = {0};
        for (int l = 0; l < MOMENT_LANES; l++) {
            lanes.min[l] = all.min;
            lanes.max[l] = all.max;
        }
        const uint64_t left = tensor->count - at;
        add(&kernels, tensor->dtype, (const char *)tensor->data + at * size,
            (size_t)(left < CHUNK ? left : CHUNK), &lanes);
        exact_add(&sum, total(lanes.sum));
        exact_add(&squares, total(lanes.squares));
        for (int l = 0; l < MOMENT_LANES; l++) {
            all.min = lanes.min[l] < all.min ? lanes.min[l] : all.min;
            all.max = lanes.max[l] > all.max ? lanes.max[l] : all.max;
        }
    }
    all.sum = exact_round(&sum);
    all.squares = exact_round(&squares);
    return all;
}

static PyObject *moments(PyObject *module, PyObject *object)
{
    (void)module;
    const struct plumb_tensor *tensor = core_tensor_of(object, "tensor");
    if (!tensor)
        return NULL;
    const bool known =
        tensor->dtype == PLUMB_F32 || tensor->dtype == PLUMB_F16 || tensor->dtype == PLUMB_BF16;
    if (!known || !tensor->count || tensor->swap || !fills_memory(tensor))
        Py_RETURN_NONE;
    struct moments found;
    Py_BEGIN_ALLOW_THREADS;
    found = measure(tensor);
    Py_END_ALLOW_THREADS;
    if (!isfinite(found.sum)) /* some element is not */
        Py_RETURN_NONE;
    /* Which zero is found depends on the order of the elements in memory. */
    return Py_BuildValue("dddd", found.min == 0 ? 0.0 : (double)found.min,
                         found.max == 0 ? 0.0 : (double)found.max,
                         found.sum / (double)tensor->count, sqrt(found.squares));
}

int core_add_moments(PyObject *module)
{
    static PyMethodDef methods[] = {
        {"moments", moments, METH_O, "Smallest, largest, mean and norm, or None."},
        {NULL, NULL, 0, NULL},
    };
    return PyModule_AddFunctions(module, methods);
}
