/* Pages of reports, and the data inside of them: whatever comes back can be drawn. */
#include "base/base64.h"
#include "plumb/plot.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look(const void *bytes, size_t size)
{
    struct plumb_pictured seen;
    struct plumb_error err = {0};
    if (plumb_pictured_parse(&seen, bytes, size, &err)) {
        if (!err.message[0])
            abort();
    } else {
        free(plumb_plot_network(seen.title, seen.sentence, seen.calls, seen.n_calls));
        for (size_t k = 0; k < seen.n_tensors; k++)
            for (size_t m = 0; m < seen.tensors[k].detail.n_maps; m++)
                free(plumb_plot_errors(seen.tensors[k].name, "", &seen.tensors[k].detail.maps[m]));
    }
    plumb_pictured_free(&seen);
}

/* The input is a page, and also what a page has packed: no fuzzer finds its way through both. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    look(data, size);
    struct buf page = {0};
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    const size_t most = compressor ? libdeflate_deflate_compress_bound(compressor, size) : 0;
    uint8_t *packed = malloc(most + 1);
    const size_t got = compressor && packed
                           ? libdeflate_deflate_compress(compressor, data, size, packed, most)
                           : 0;
    buf_text(&page, "<script id=\"plumb-data\">");
    if (got)
        base64_put(&page, packed, got);
    buf_text(&page, "</script>");
    if (!page.failed)
        look(page.data, page.size);
    free(packed);
    if (compressor)
        libdeflate_free_compressor(compressor);
    buf_free(&page);
    return 0;
}
