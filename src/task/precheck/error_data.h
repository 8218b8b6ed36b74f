/* -save_error_data: the tensors of a call that did not pass, a .pt file each. */
#ifndef PRECHECK_ERROR_DATA_H
#define PRECHECK_ERROR_DATA_H

#include "plumb/op.h"

/* One side of a call's results. bench and device of what was not compared are NULL. */
struct error_data {
    const char *folder, *name; /* "Torch.cat.0" */
    const struct plumb_call *call;
    const struct plumb_result *bench, *device;
};

/* Writes NAME.forward.input.K.pt and NAME.forward.kwargs.KEY[.K].pt,
 * NAME.forward.output.{bench,device}.K.pt, NAME.backward.input.K.pt and
 * NAME.backward.output.{bench,device}.K.pt into folder, which is made when it is missing. K counts
 * the leaves, also those that are no tensors. A slash in a name becomes _, and a name that no file
 * can have is cut. */
enum plumb_code error_data_save(const struct error_data *data, struct plumb_error *err);

/* Removes what a run that was killed was still writing. */
void error_data_clean(const char *folder);

#endif
