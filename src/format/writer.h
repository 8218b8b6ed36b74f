/* What a container format implements to be written through plumb_writer (plumb/write.h). */
#ifndef FORMAT_WRITER_H
#define FORMAT_WRITER_H

#include "plumb/write.h"

struct writer_ops {
    /* As plumb_writer_add; name is not empty. A refusal (PLUMB_E_ARG, PLUMB_E_UNSUPPORTED) leaves
     * the file as it was; after any other failure only abort follows. */
    enum plumb_code (*add)(struct plumb_writer *writer, const char *name, int64_t step,
                           const struct plumb_tensor *tensor, struct plumb_error *err);

    /* As plumb_writer_sync; NULL for formats that are whole only at their end. */
    enum plumb_code (*sync)(struct plumb_writer *writer, struct plumb_error *err);

    /* Finishes the file under its name. Frees the writer in any case. */
    enum plumb_code (*close)(struct plumb_writer *writer, struct plumb_error *err);

    /* Removes whatever was written since the last sync and frees the writer. */
    void (*abort)(struct plumb_writer *writer);
};

/* The first member of every format's own writer. */
struct plumb_writer {
    const struct writer_ops *ops;
    enum plumb_code
        failed;         /* set by plumb_writer_add: a file with half a tensor is never finished */
    uint32_t path_call; /* 1 + what plumb_writer_call said; 0: nothing */
};

/* options is not NULL. *writer is set only on success. */
enum plumb_code safetensors_writer_open(struct plumb_writer **writer, const char *path,
                                        const struct plumb_writer_options *options,
                                        struct plumb_error *err);
enum plumb_code hdf5_writer_open(struct plumb_writer **writer, const char *path,
                                 const struct plumb_writer_options *options,
                                 struct plumb_error *err);

#endif
