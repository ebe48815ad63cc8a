#include "formats.h"

#include <string.h>

#include "exporter/input/accl/accl.h"
#include "exporter/input/kineto/gather.h"
#include "exporter/input/kineto/kineto.h"
#include "exporter/input/nsys/nsys.h"
#include "format/names.h"

static int read_kineto(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                       struct ni_progress *progress) {
  struct ni_imported m;
  ni_imported_init(&m, path[0]);
  const int e = ni_kineto_gather(&m, progress);
  if (e == 0)
    return take(arg, &m);
  ni_imported_free(&m);
  return e;
}

static int read_nsys(const char *const *path, size_t n, ni_imported_take *take, void *arg,
                     struct ni_progress *progress) {
  return ni_nsys_read(path[0], take, arg, progress);
}

static const struct ni_import_format formats[] = {
    {"kineto", NI_MECHANISM_KINETO, "a kineto trace", ".json and no .json.gz", ni_kineto_is_trace, NULL, NULL,
     read_kineto,
     "no NCCL kernel in it, or none with a time: was the GPU profiled (ProfilerActivity.CUDA), and did the "
     "rank communicate?",
     "not a whole trace: not JSON with a list of traceEvents, or its end is missing",
     "sizes and communicators are in the traces of PyTorch 2.3 and later"},
    {"nsys", NI_MECHANISM_NSYS, "an export of Nsight Systems", ".sqlite", ni_nsys_is_export, NULL, NULL,
     read_nsys,
     "no NCCL kernel in it, or none with a time: were CUDA's kernels traced (nsys profile "
     "--trace=cuda,nvtx), and did the rank communicate?",
     "no whole SQLite file of nsys export --type sqlite: another kind of file, cut, or broken",
     "sizes are in what nsys export --include-blobs=true makes, of nsys profile --trace=cuda,nvtx"},
    {"accl", NI_MECHANISM_ACCL, "logs of ACCL", "accl_profiler_rank*.jsonl", ni_accl_is_log,
     ni_accl_by_process, ni_accl_same_process, ni_accl_read,
     "no collective in it: the process died before its first one had ended, or all were below "
     "ACCL_PROFILER_MIN_SIZE_BYTES",
     "no log of ACCL, by its name (accl_profiler_rank<N>_<host>_pid<PID>_0x<id>.jsonl) or by its lines",
     NULL}};

const struct ni_import_format *ni_import_format(const char *name) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strcmp(formats[i].name, name) == 0)
      return &formats[i];
  return NULL;
}
