/*
 * libFuzzer: any bytes as an answer of NCCL's RAS, and as a second look in which a digit is another one. What
 * is read is within its bounds and in order, the verdict adds up, and it can be said as text and as JSON.
 *
 *   test/fuzz/run.sh 60 ras
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/cmds/hang/say_ras.h"
#include "exporter/input/parse/parse.h"

static void need(int truth) {
  if (!truth)
    abort();
}

static void look_at(const struct ni_ras *r) {
  size_t ranks = 0;
  need(r->n_comms <= NI_RAS_COMMS && r->n_ranks <= NI_RAS_RANKS && r->n_funcs <= NI_RAS_FUNCS);
  for (size_t f = 0; f < r->n_funcs; f++)
    need(memchr(r->func[f], 0, sizeof r->func[f]) != NULL);
  for (size_t i = 0; i < r->n_comms; i++) {
    const struct ni_ras_comm *c = &r->comm[i];
    need(c->first == ranks && c->first + c->n <= r->n_ranks && memchr(c->secondary, 0, sizeof c->secondary));
    need(c->odd || (c->size >= 1 && c->size <= NI_RAS_SIZE && c->n >= 1 && c->n <= (size_t)c->size));
    for (size_t k = c->first; k < c->first + c->n; k++) {
      const struct ni_ras_rank *x = &r->rank[k];
      need(memchr(x->host, 0, sizeof x->host) && x->here < NI_RAS_HERE_COUNT && x->pid >= NI_RAS_NONE);
      need(c->odd || (x->rank >= 0 && x->rank < c->size && (k == c->first || x[-1].rank < x->rank)));
    }
    ranks += c->n;
  }
  need(ranks == r->n_ranks);
}

static int take(struct ni_ras_look *look, const uint8_t *data, size_t size, size_t at, uint64_t ns) {
  char why[256] = "", *text = calloc(size + NI_PARSE_PADDING, 1);
  need(text != NULL);
  if (size)
    memcpy(text, data, size);
  if (at < size && text[at] >= '0' && text[at] < '9')
    text[at]++;
  *look = (struct ni_ras_look){.ns = ns};
  int e = ni_ras_parse(&look->ras, text, size, why, sizeof why);
  need(e == 0 || (e == -EBADMSG && *why && memchr(why, 0, sizeof why)));
  if (e == 0)
    look_at(&look->ras);
  free(text);
  return e;
}

static void check_verdict(const struct ni_ras_verdict *v, const struct ni_ras_look *look) {
  size_t odd = 0, all = 0;
  for (size_t i = 0; i < look->ras.n_comms; i++)
    odd += look->ras.comm[i].odd != NULL;
  need(v->comms + odd == look->ras.n_comms && v->odd == odd && v->n <= v->comms && v->moved <= v->processes);
  for (size_t i = 0; i < NI_RAS_HERE_COUNT; i++)
    all += v->in[i];
  need(v->in[NI_RAS_HERE] == v->processes && all <= look->ras.n_ranks);
  for (size_t i = 0; i < v->n; i++) {
    const struct ni_ras_trouble *t = &v->trouble[i];
    need(!t->comm->odd && t->behind + t->unlike < t->here + 1 && t->here <= t->comm->n &&
         (!t->hangs || v->answer == NI_HANG_LIKELY));
  }
  need(v->answer != NI_HANG_CERTAIN &&
       (v->answer != NI_HANG_NO_HANG || (v->apart_ns && v->moved == v->processes)));
}

static void say(const struct ni_hang_ras *r) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  struct ni_json j;
  need(f != NULL);
  ni_hang_ras_say(f, r);
  ni_json_open(&j, f, "x");
  ni_hang_ras_json(&j, r);
  ni_json_close(&j);
  need(fclose(f) == 0 && n > 0);
  for (size_t i = 0; i < n; i++)
    need((unsigned char)text[i] >= ' ' || text[i] == '\n');
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  size_t at = size ? (data[0] + 256u * data[size - 1]) % size : 0;
  struct ni_hang_ras r = {.where = {"answer.json"}, .n = 1, .answered = true};
  if (take(&r.before, data, size, SIZE_MAX, 1000000000) == 0) {
    need(ni_ras_judge(&r.v, &r.before, NULL, 10) == 0);
    check_verdict(&r.v, &r.before);
    ni_ras_verdict_free(&r.v);
    if (take(&r.now, data, size, at, 400000000000) == 0) {
      need(ni_ras_judge(&r.v, &r.now, &r.before, UINT64_C(300000000000)) == 0);
      check_verdict(&r.v, &r.now);
      say(&r);
    }
  }
  ni_hang_ras_free(&r);
  return 0;
}
