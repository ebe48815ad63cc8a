/*
 * What the tests of the writer share: whose lines they are, one record, and the comparison. For test programs
 * of one file.
 */
#ifndef NI_TEST_LINE_SAMPLES_H
#define NI_TEST_LINE_SAMPLES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "format/line_write.h"
#include "test/unit/exporter/json_check.h"

static char buf[NI_LINE_MAX_BYTES];
static const struct ni_meta origin = {
    .hostname = "node-a", .git_rev = "1a2b3c4d5", .producer = NI_PRODUCER " 0.1.0", .pid = 4242};
#define META(ts) \
  "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"1a2b3c4d5\"," \
  "\"rec_mechanism\":\"nccl_profiler_interface\",\"dump_timestamp_us\":" ts \
  ",\"hostname\":\"node-a\",\"pid\":4242," \
  "\"producer\":\"nccl-inspector-c 0.1.0\"},"
#define HEAD \
  "{\"header\":{\"id\":\"0x5d1c7e90aa41b2ff\",\"comm_name\":\"dp\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1},"

static const struct ni_ident ident = {0x5d1c7e90aa41b2ff, "dp", 3, 8, 1};

static inline struct ni_line_prefix prefix(const struct ni_ident *id) {
  struct ni_line_prefix p;
  assert_int_equal(ni_line_prefix_init(&p, id, &origin), 0);
  return p;
}

static inline void expect_line(size_t n, const char *want) {
  assert_true(jc_line_ok(buf, n));
  if (n != strlen(want) || memcmp(buf, want, n)) {
    print_error("got  %.*swant %s", (int)n, buf, want);
    fail();
  }
}

static inline struct ni_record coll_record(void) {
  return (struct ni_record){.kind = NI_KIND_COLL,
                            .timing = NI_TIMING_KERNEL_GPU,
                            .has = NI_HAS_EXEC_NS | NI_HAS_ENQUEUE | NI_HAS_GPU_DELTA | NI_HAS_REC_SN |
                                NI_HAS_ROOT | NI_HAS_NCHANNELS | NI_HAS_TESTS_SIZE | NI_HAS_ALGOBW |
                                NI_HAS_BUSBW,
                            .func = "AllReduce",
                            .datatype = "ncclFloat32",
                            .algo = "RING",
                            .proto = "LL128",
                            .sn = 17,
                            .root = 0,
                            .nchannels = 8,
                            .msg_bytes = 1048576,
                            .tests_bytes = 1048576,
                            .exec_us = 59,
                            .exec_ns = 59000,
                            .enqueue_ns = 1790000000123000001,
                            .gpu_start_delta_ns = -250,
                            .rec_sn = 21,
                            .algobw_gbs = 17.772474576271187,
                            .busbw_gbs = 31.101830508474577};
}

#endif
