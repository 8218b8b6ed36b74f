/* Types of HDF5 as those of plumb, with h5py's bool and complex numbers, and the way back. */
#include "h5/h5.h"

#include <stdlib.h>
#include <string.h>

struct float_layout {
    enum h5_class class;
    size_t size, sign_at, exponent_at, exponent_bits, mantissa_at, mantissa_bits, bias;
};

static const struct float_layout floats[] = {
    {H5_FLOAT, 2, 15, 10, 5, 0, 10, 15},    {H5_FLOAT, 4, 31, 23, 8, 0, 23, 127},
    {H5_FLOAT, 8, 63, 52, 11, 0, 52, 1023}, {H5_BFLOAT16, 2, 15, 7, 8, 0, 7, 127},
    {H5_E4M3, 1, 7, 3, 4, 0, 3, 7},         {H5_E5M2, 1, 7, 2, 5, 0, 2, 15},
};

static bool whole_and_ordered(hid_t type, size_t size, struct h5_dataset *out,
                              struct outcome *outcome)
{
    H5T_order_t order = H5Tget_order(type);
    if (order != H5T_ORDER_LE && order != H5T_ORDER_BE)
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds numbers in an unusual byte order");
    if (H5Tget_precision(type) != 8 * size || H5Tget_offset(type) != 0)
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds numbers that do not fill their bytes");
    out->size = (uint8_t)size;
    out->big_endian = order == H5T_ORDER_BE;
    return true;
}

static bool describe_integer(hid_t type, struct h5_dataset *out, struct outcome *outcome)
{
    size_t size = H5Tget_size(type);
    if (size != 1 && size != 2 && size != 4 && size != 8)
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds integers of %zu bytes", size);
    out->type = H5Tget_sign(type) == H5T_SGN_NONE ? H5_UINT : H5_INT;
    return whole_and_ordered(type, size, out, outcome);
}

static bool describe_float(hid_t type, struct h5_dataset *out, struct outcome *outcome)
{
    size_t size = H5Tget_size(type);
    struct float_layout is = {.size = size, .bias = H5Tget_ebias(type)};
    if (H5Tget_fields(type, &is.sign_at, &is.exponent_at, &is.exponent_bits, &is.mantissa_at,
                      &is.mantissa_bits) < 0)
        return fail_hdf5(outcome, H5_EXIT_DAMAGED,
                         "it holds a floating-point type that cannot be read");
    for (size_t i = 0; i < sizeof floats / sizeof floats[0]; i++) {
        const struct float_layout *f = &floats[i];
        if (f->size != is.size || f->sign_at != is.sign_at || f->exponent_at != is.exponent_at ||
            f->exponent_bits != is.exponent_bits || f->mantissa_at != is.mantissa_at ||
            f->mantissa_bits != is.mantissa_bits || f->bias != is.bias ||
            H5Tget_norm(type) != H5T_NORM_IMPLIED)
            continue;
        out->type = (uint8_t)f->class;
        return whole_and_ordered(type, size, out, outcome);
    }
    return fail(
        outcome, H5_EXIT_UNSUPPORTED,
        "it holds a floating-point type of %zu bytes with %zu bits of exponent and %zu of mantissa",
        size, is.exponent_bits, is.mantissa_bits);
}

static bool member_is(hid_t type, unsigned index, const char *name)
{
    char *text = H5Tget_member_name(type, index);
    bool same = text && strcmp(text, name) == 0;
    H5free_memory(text);
    return same;
}

/* {r, i}: how h5py stores complex numbers. */
static bool describe_complex(hid_t type, struct h5_dataset *out, struct outcome *outcome)
{
    size_t size = H5Tget_size(type);
    struct h5_dataset part[2] = {0};
    bool good = H5Tget_nmembers(type) == 2 && member_is(type, 0, "r") && member_is(type, 1, "i") &&
                (size == 8 || size == 16);
    for (unsigned i = 0; good && i < 2; i++) {
        hid_t member = H5Tget_member_type(type, i);
        good = H5Tget_class(member) == H5T_FLOAT && describe_float(member, &part[i], outcome) &&
               part[i].type == H5_FLOAT && part[i].size == size / 2 &&
               H5Tget_member_offset(type, i) == i * size / 2;
        H5Tclose(member);
    }
    if (!good || part[0].big_endian != part[1].big_endian)
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds structures of %d fields, not numbers",
                    H5Tget_nmembers(type));
    out->type = H5_COMPLEX;
    out->size = (uint8_t)size;
    out->big_endian = part[0].big_endian;
    return true;
}

/* {FALSE = 0, TRUE = 1} over int8 is h5py's bool; any other enumeration counts as its integers. */
static bool describe_enum(hid_t type, struct h5_dataset *out, struct outcome *outcome)
{
    hid_t base = H5Tget_super(type);
    bool good = base >= 0 && H5Tget_class(base) == H5T_INTEGER;
    if (good)
        good = describe_integer(base, out, outcome);
    else
        fail(outcome, H5_EXIT_UNSUPPORTED, "it holds an enumeration that is not over integers");
    H5Tclose(base);
    int8_t no = -1, yes = -1;
    if (good && out->size == 1 && H5Tget_nmembers(type) == 2 &&
        H5Tenum_valueof(type, "FALSE", &no) >= 0 && H5Tenum_valueof(type, "TRUE", &yes) >= 0 &&
        no == 0 && yes == 1)
        out->type = H5_BOOLEAN;
    H5Eclear2(H5E_DEFAULT); /* a missing member is no failure */
    return good;
}

bool type_describe(hid_t type, struct h5_dataset *out, struct outcome *outcome)
{
    switch (H5Tget_class(type)) {
    case H5T_INTEGER:
        return describe_integer(type, out, outcome);
    case H5T_FLOAT:
        return describe_float(type, out, outcome);
    case H5T_COMPOUND:
        return describe_complex(type, out, outcome);
    case H5T_ENUM:
        return describe_enum(type, out, outcome);
    case H5T_STRING:
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds strings, not numbers");
    case H5T_REFERENCE:
        return fail(outcome, H5_EXIT_UNSUPPORTED,
                    "it holds references to other objects, not numbers");
    case H5T_VLEN:
        return fail(outcome, H5_EXIT_UNSUPPORTED,
                    "it holds elements of varying length, not a tensor");
    case H5T_OPAQUE:
    case H5T_BITFIELD:
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds bytes without a numeric type");
    case H5T_ARRAY:
        return fail(outcome, H5_EXIT_UNSUPPORTED, "it holds elements that are arrays, not numbers");
    default:
        return fail_hdf5(outcome, H5_EXIT_UNSUPPORTED, "it holds elements of an unknown type");
    }
}

static hid_t make_float(unsigned size)
{
    if (size == 4)
        return H5Tcopy(H5T_IEEE_F32LE);
    if (size == 8)
        return H5Tcopy(H5T_IEEE_F64LE);
    hid_t type = H5Tcopy(H5T_IEEE_F32LE);
    if (H5Tset_fields(type, 15, 10, 5, 0, 10) < 0 || H5Tset_size(type, 2) < 0 ||
        H5Tset_ebias(type, 15) < 0)
        return -1;
    return type;
}

static hid_t make_boolean(void)
{
    hid_t type = H5Tenum_create(H5T_STD_I8LE);
    int8_t no = 0, yes = 1;
    if (H5Tenum_insert(type, "FALSE", &no) < 0 || H5Tenum_insert(type, "TRUE", &yes) < 0)
        return -1;
    return type;
}

static hid_t make_complex(unsigned size, bool big_endian)
{
    hid_t part = type_make(H5_FLOAT, size / 2, big_endian);
    hid_t type = H5Tcreate(H5T_COMPOUND, size);
    if (H5Tinsert(type, "r", 0, part) < 0 || H5Tinsert(type, "i", size / 2, part) < 0)
        return -1;
    return type;
}

hid_t type_make(enum h5_class class, unsigned size, bool big_endian)
{
    bool power_of_two = size == 1 || size == 2 || size == 4 || size == 8;
    hid_t type = -1;
    if ((class == H5_UINT || class == H5_INT) && power_of_two) {
        type = H5Tcopy(class == H5_UINT ? H5T_STD_U8LE : H5T_STD_I8LE);
        if (H5Tset_size(type, size) < 0 || H5Tset_precision(type, 8 * size) < 0)
            return -1;
    } else if (class == H5_FLOAT && power_of_two && size > 1) {
        type = make_float(size);
    } else if (class == H5_BOOLEAN && size == 1) {
        return make_boolean();
    } else if (class == H5_COMPLEX && (size == 8 || size == 16)) {
        return make_complex(size, big_endian);
    }
    if (type >= 0 && H5Tset_order(type, big_endian ? H5T_ORDER_BE : H5T_ORDER_LE) < 0)
        return -1;
    return type;
}
