/*
 * libFuzzer: any bytes as a line. Besides not crashing: a parser that has seen other lines (and takes the short way for
 * heads it knows) must say the same as one that has seen none, and the text must be as it was.
 *
 *   clang -g -O1 -fsanitize=fuzzer-no-link,address,undefined -D_GNU_SOURCE -I. -Iinclude -c test/fuzz/fuzz_line.c \
 *     exporter/parse_*.c; clang++ the same for exporter/parse_*.cc; link with -fsanitize=fuzzer -lsimdjson
 *   ./fuzz_line -max_len=4096 -dict=test/fuzz/line.dict NEW_CORPUS test/fuzz/corpus/line
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/input/parse/parse.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static void same_text(const char *a, const char *b) {
  need(!a == !b);
  if (a)
    need(strcmp(a, b) == 0);
}

static void same(const struct ni_line *a, const struct ni_line *b) {
  need(a->kind == b->kind && a->has_header == b->has_header && a->unknown_keys == b->unknown_keys);
  if (a->has_header) {
    need(a->ident.comm_hash == b->ident.comm_hash && a->ident.rank == b->ident.rank &&
         a->ident.n_ranks == b->ident.n_ranks && a->ident.nnodes == b->ident.nnodes);
    same_text(a->ident.comm_name, b->ident.comm_name);
    need(a->meta.dump_timestamp_us == b->meta.dump_timestamp_us && a->meta.pid == b->meta.pid);
    same_text(a->meta.hostname, b->meta.hostname);
    same_text(a->meta.version, b->meta.version);
    same_text(a->meta.producer, b->meta.producer);
  }
  same_text(a->kind_name, b->kind_name);
  if (a->kind != NI_LINE_OP)
    return;
  need(a->op.kind == b->op.kind && a->op.has == b->op.has && a->op.sn == b->op.sn &&
       a->op.exec_us == b->op.exec_us && a->op.rec_sn == b->op.rec_sn && a->op.msg_bytes == b->op.msg_bytes &&
       a->op.timing == b->op.timing);
  same_text(a->op.func, b->op.func);
  same_text(a->op.algo, b->op.algo);
  if (a->op.has & NI_HAS_BUSBW)
    need(a->op.busbw_gbs == b->op.busbw_gbs && a->op.busbw_gbs >= 0);
  need(!a->trace == !b->trace);
  if (a->trace)
    need(a->trace->n == b->trace->n && a->trace->n <= NI_TRACE_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static struct ni_parser *old;
  static struct ni_line a, b;
  struct ni_parser *fresh;
  if (!old)
    need(ni_parser_new(&old) == 0);
  need(ni_parser_new(&fresh) == 0);
  /* Each line of the input: the first ones give the old parser heads to remember. */
  const uint8_t *end = data + size;
  while (data < end) {
    const uint8_t *lf = memchr(data, '\n', (size_t)(end - data));
    size_t len = (size_t)((lf ? lf : end) - data);
    char *text = malloc(len + NI_PARSE_PADDING), *bare = malloc(len ? len : 1);
    memcpy(text, data, len);
    /* What lies behind a line is the next line, or anything. */
    memset(text + len, len % 2 ? '}' : '"', NI_PARSE_PADDING);
    memcpy(bare, data, len);
    enum ni_reject ra = ni_parse_line(old, text, len, len + NI_PARSE_PADDING, &a);
    need(memcmp(text, data, len) == 0);
    ni_parser_free(fresh);
    need(ni_parser_new(&fresh) == 0);
    enum ni_reject rb = ni_parse_line(fresh, bare, len, len, &b);
    if (ra != NI_REJ_TOO_DEEP || rb != NI_REJ_BAD_JSON)
      need(ra == rb || (ra == NI_REJ_BAD_JSON && rb == NI_REJ_TOO_DEEP));
    if (ra == NI_OK)
      same(&a, &b);
    /* Where JSON itself is broken, simdjson's order of noticing depends on what follows the line. */
    else if (ra != NI_REJ_BAD_JSON)
      same_text(a.bad_key, b.bad_key);
    free(text);
    free(bare);
    if (!lf)
      break;
    data = lf + 1;
  }
  ni_parser_free(fresh);
  return 0;
}
