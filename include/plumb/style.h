/* How numbers are shown to people. */
#ifndef PLUMB_STYLE_H
#define PLUMB_STYLE_H

/* How a column shows real numbers to people; machine formats always get all digits. */
enum plumb_style {
    PLUMB_STYLE_TEXT,
    PLUMB_STYLE_NUMBER,  /* rounded to 7 decimals, shortest form: 1, 99.98, 0.0078125, 9.9e-06 */
    PLUMB_STYLE_REPR,    /* the same with at least one decimal: 1.0, 2303.0, 6.8e-06 */
    PLUMB_STYLE_PERCENT, /* cut, not rounded, to 2 decimals: 99.98; 100 only when it is */
    PLUMB_STYLE_DIGITS,  /* 7 significant digits, any magnitude: 3.055902e-13 */
};

#endif
