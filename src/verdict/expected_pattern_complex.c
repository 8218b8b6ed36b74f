/* What only complex numbers have: a factor that turns them all. */
#include "verdict/expected_pattern.h"

#include "base/plain.h"

#include <math.h>

enum { FEWEST = 4 };

bool pattern_turned(const struct off *f, char *text)
{
    const struct sample *s = f->s;
    double re = 0, im = 0, size = 0;
    if (!f->parts || f->n < FEWEST)
        return false;
    for (uint64_t i = 0; i + 1 < s->n; i += 2) {
        const double a = s->y[i], b = s->y[i + 1], c = s->got[i], d = s->got[i + 1];
        if (s->out[i] || s->out[i + 1])
            continue;
        re += a * c + b * d;
        im += a * d - b * c;
        size += a * a + b * b;
    }
    re /= size;
    im /= size;
    if (!isfinite(re) || !isfinite(im) || im == 0)
        return false;
    for (uint64_t i = 0; i + 1 < s->n; i += 2) {
        const double a = s->y[i], b = s->y[i + 1];
        if (!s->out[i] && !s->out[i + 1] &&
            (!off_fits(f, i, re * a - im * b) || !off_fits(f, i + 1, re * b + im * a)))
            return false;
    }
    plain_print(text, PATTERN_TEXT, "everything is multiplied by %.6g%+.6gi, turned by %.3g", re,
                im, atan2(im, re));
    return true;
}
