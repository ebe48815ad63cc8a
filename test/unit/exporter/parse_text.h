/*
 * What the tests of the parser share: parts of a line, and parsing it where it lies. For test programs of one
 * file.
 */
#ifndef NI_TEST_PARSE_TEXT_H
#define NI_TEST_PARSE_TEXT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "exporter/input/parse/parse.h"
#include "format/line_tables.h"

#define HEAD "\"header\":{\"id\":\"0x5d1c7e90aa41b2\",\"rank\":3,\"n_ranks\":8,\"nnodes\":1}"
#define META_AT(v, t) \
  "\"metadata\":{\"inspector_output_format_version\":\"" v \
  "\",\"git_rev\":\"1a2b\",\"rec_mechanism\":\"m\"," \
  "\"dump_timestamp_us\":" t ",\"hostname\":\"node-a\",\"pid\":4242}"
#define META META_AT("v4.0", "1790000000123456")
#define OURS \
  "\"metadata\":{\"inspector_output_format_version\":\"v4.0\",\"git_rev\":\"1a2b\",\"rec_mechanism\":\"m\"," \
  "\"dump_timestamp_us\":1790000000123456,\"hostname\":\"node-a\",\"pid\":4242,\"producer\":\"nccl-" \
  "inspector-c 0.1.0\"}"
#define COLL \
  "\"coll_perf\":{\"coll\":\"AllReduce\",\"coll_sn\":17,\"coll_msg_size_bytes\":1048576,\"coll_exec_time_" \
  "us\":59," \
  "\"coll_timing_source\":\"kernel_gpu\",\"coll_algobw_gbs\":17.772475,\"coll_busbw_gbs\":31.101831}"

static struct ni_parser *p;
static struct ni_line line;

/* Parses a line where it lies, with hostile bytes behind it; the text must be unchanged after. */
static enum ni_reject parse(const char *text) {
  size_t len = strlen(text);
  char *b = malloc(len + NI_PARSE_PADDING);
  memcpy(b, text, len);
  memset(b + len, '}', NI_PARSE_PADDING);
  enum ni_reject r = ni_parse_line(p, b, len, len + NI_PARSE_PADDING, &line);
  assert_memory_equal(b, text, len);
  free(b);
  return r;
}

static inline int setup(void **state) {
  (void)state;
  return ni_parser_new(&p);
}

static inline int teardown(void **state) {
  (void)state;
  ni_parser_free(p);
  return 0;
}

#endif
