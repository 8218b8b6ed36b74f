/* The element types of GE dumps. */
#include "format/ge_type.h"

#include <stddef.h>

#define SAME(name, dtype)                                                                          \
    {                                                                                              \
        name, GE_AS_IS, dtype                                                                      \
    }
#define NOTHING(name)                                                                              \
    {                                                                                              \
        name, GE_NO_VALUE, PLUMB_U8                                                                \
    }

/* By number. The quantised types are compared as the integers they are stored in. */
static const struct ge_type types[] = {
    [0] = {"UNDEFINED", GE_BYTES, PLUMB_I8},
    [1] = SAME("FLOAT", PLUMB_F32),
    [2] = SAME("FLOAT16", PLUMB_F16),
    [3] = SAME("INT8", PLUMB_I8),
    [4] = SAME("UINT8", PLUMB_U8),
    [5] = SAME("INT16", PLUMB_I16),
    [6] = SAME("UINT16", PLUMB_U16),
    [7] = SAME("INT32", PLUMB_I32),
    [8] = SAME("INT64", PLUMB_I64),
    [9] = SAME("UINT32", PLUMB_U32),
    [10] = SAME("UINT64", PLUMB_U64),
    [11] = SAME("BOOL", PLUMB_BOOL),
    [12] = SAME("DOUBLE", PLUMB_F64),
    [13] = NOTHING("STRING"),
    [14] = SAME("DUAL_SUB_INT8", PLUMB_I8),
    [15] = SAME("DUAL_SUB_UINT8", PLUMB_U8),
    [16] = SAME("COMPLEX64", PLUMB_C64),
    [17] = SAME("COMPLEX128", PLUMB_C128),
    [18] = SAME("QINT8", PLUMB_I8),
    [19] = SAME("QINT16", PLUMB_I16),
    [20] = SAME("QINT32", PLUMB_I32),
    [21] = SAME("QUINT8", PLUMB_U8),
    [22] = SAME("QUINT16", PLUMB_U16),
    [23] = SAME("RESOURCE", PLUMB_I64),
    [24] = NOTHING("STRING_REF"),
    [25] = NOTHING("DUAL"),
    [26] = NOTHING("VARIANT"),
    [27] = SAME("BF16", PLUMB_BF16),
    [28] = SAME("INT4", PLUMB_I4),
    [29] = {"UINT1", GE_BITS, PLUMB_U8},
    [30] = {"INT2", GE_PAIRS, PLUMB_I8},
    [31] = {"UINT2", GE_PAIRS, PLUMB_U8},
    [32] = {"COMPLEX32", GE_HALVES, PLUMB_C64},
    [33] = SAME("HIFLOAT8", PLUMB_HIF8),
    [34] = SAME("FLOAT8_E5M2", PLUMB_F8_E5M2),
    [35] = SAME("FLOAT8_E4M3FN", PLUMB_F8_E4M3FN),
    [36] = SAME("FLOAT8_E8M0", PLUMB_F8_E8M0),
    [37] = NOTHING("FLOAT6_E3M2"),
    [38] = NOTHING("FLOAT6_E2M3"),
    [39] = SAME("FLOAT4_E2M1", PLUMB_F4_E2M1),
    [40] = {"FLOAT4_E1M2", GE_E1M2, PLUMB_F32},
    [41] = NOTHING("HIFLOAT4"),
};

const struct ge_type *ge_type_find(int32_t type)
{
    bool known = type >= 0 && (size_t)type < sizeof types / sizeof *types;
    return known ? &types[type] : NULL;
}

int32_t ge_type_of_runtime(int32_t runtime)
{
    static const struct {
        int32_t runtime, dump;
    } pairs
        [] =
            {
                {0, 1},   {1, 2},   {2, 3},   {3, 7},   {4, 4},   {6, 5},
                {7, 6},   {8, 9},   {9, 8},   {10, 10}, {11, 12}, {12, 11},
                {16, 16}, {17, 17}, {23, 23}, {27, 27}, {28, 0}, /* undefined */
                {29, 28},                                        /* int4 */
                {30, 29},                                        /* uint1 */
            };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (pairs[i].runtime == runtime)
            return pairs[i].dump;
    return -1;
}
