/*
 * Network operations of a box: which transfer of an operation waits, and for what.
 *
 * They are read once, while their progress thread may go on: phases and times are single words, each true at some moment.
 */
#include <errno.h>
#include <stdlib.h>

#include "exporter/base/array.h"
#include "box_decode.h"
#include "box_image.h"
#include "box_net.h"

static int by_parent(const void *a, const void *b) {
  const struct ni_box_proxy *x = a, *y = b;
  if (x->comm_page != y->comm_page) return x->comm_page < y->comm_page ? -1 : 1;
  if (x->kind != y->kind) return x->kind < y->kind ? -1 : 1;
  if (x->rec_sn != y->rec_sn) return x->rec_sn < y->rec_sn ? -1 : 1;
  return x->at < y->at ? -1 : x->at > y->at;
}

static int take(struct ni_box *b, const unsigned char *p, size_t *cap) {
  uint32_t flags = NI_BOX_FLAGS(ni_box_get(b, p, NI_BOX_PROXY_STATE, 0));
  if (!(flags & NI_BOX_OP_LIVE) || (flags & NI_BOX_OP_CLOSED)) return 0;
  if (!(ni_box_get(b, p, NI_BOX_PROXY_FLAGS, 0) & NI_BOX_PROXY_PARENT)) return 0;
  if (!ni_array_room(b->proxy, b->n_proxies, *cap)) return -ENOMEM;
  b->proxy[b->n_proxies++] = (struct ni_box_proxy){ni_box_get(b, p, NI_BOX_PROXY_PARENT_REC_SN, 0), p,
                                                   (uint32_t)ni_box_get(b, p, NI_BOX_PROXY_COMM_PAGE, 0),
                                                   (uint32_t)ni_box_get(b, p, NI_BOX_PROXY_PARENT_KIND, 0)};
  return 0;
}

int ni_box_find_proxies(struct ni_box *b) {
  const struct ni_box_header *h = &b->h;
  size_t cap = 0;
  if (!h->proxy_class || h->proxy_class > 255 || h->proxy_bytes < 64 || h->proxy_bytes % 8 || h->proxy_chunk_pages == 0 ||
      h->proxy_chunk_pages > 4096 || h->proxy_class == h->comm_class)
    return 0;
  uint32_t run = 0; /* pages of the class that lie one after the other */
  for (uint32_t page = h->data_page; page < b->end_page; page++) {
    run = ni_box_class(b, page) == h->proxy_class ? run + 1 : 0;
    if (run == 0 || run % h->proxy_chunk_pages) continue;
    uint32_t first = page + 1 - h->proxy_chunk_pages;
    const unsigned char *chunk = b->image + (uint64_t)first * NI_BOX_PAGE_BYTES;
    size_t bytes = (size_t)h->proxy_chunk_pages * NI_BOX_PAGE_BYTES;
    for (size_t at = 0; at + h->proxy_bytes <= bytes; at += h->proxy_bytes) {
      if (!ni_box_holds(b, first + (uint32_t)(at / NI_BOX_PAGE_BYTES))) continue; /* all 0: not in use */
      int e = take(b, chunk + at, &cap);
      if (e < 0) return e;
    }
  }
  if (b->n_proxies > 1) qsort(b->proxy, b->n_proxies, sizeof *b->proxy, by_parent);
  return 0;
}

bool ni_box_net_of(const struct ni_box *b, const struct ni_box_op *op, struct ni_box_net *out) {
  static const char *const phases[NI_BOX_PHASE_COUNT] = {"", "gpu_produce", "peer_credit", "wire", "flush", "gpu_consume"};
  size_t at;
  const struct ni_box_proxy want = {op->rec_sn, NULL, op->comm_page, (uint32_t)op->kind};
  bool found = false;
  ni_array_search(at, b->n_proxies, by_parent(&b->proxy[at], &want) < 0);
  uint32_t places = b->field[NI_BOX_PROXY_PHASE].size;
  for (; at < b->n_proxies && b->proxy[at].comm_page == op->comm_page && b->proxy[at].kind == (uint32_t)op->kind &&
         b->proxy[at].rec_sn == op->rec_sn; at++) {
    const unsigned char *p = b->proxy[at].at;
    for (uint32_t i = 0; i < places && i < 64; i++) {
      uint64_t phase = ni_box_get(b, p, NI_BOX_PROXY_PHASE, i), ticks = ni_box_get(b, p, NI_BOX_PROXY_STEP_LAST, i);
      if (phase == NI_BOX_PHASE_NONE || phase >= NI_BOX_PHASE_COUNT) continue;
      uint64_t since = ni_box_unix_ns(b, ticks);
      bool net = phase == NI_BOX_PHASE_PEER_CREDIT || phase == NI_BOX_PHASE_WIRE || phase == NI_BOX_PHASE_FLUSH;
      /* One that waits for the network says more than one that waits for the own GPU. */
      if (found && (out->on_network > net || (out->on_network == net && out->since_ns <= since))) continue;
      *out = (struct ni_box_net){(int32_t)(uint32_t)ni_box_get(b, p, NI_BOX_PROXY_PEER, 0),
                                 (int32_t)ni_box_get(b, p, NI_BOX_PROXY_CHANNEL, 0), phases[phase], net, since};
      found = true;
    }
  }
  return found;
}
