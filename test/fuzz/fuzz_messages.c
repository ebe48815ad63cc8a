/*
 * What others send to the head: the first byte says which message, the rest is it. What was taken and is
 * written again must be taken again, and written the same.
 */
#include <stdlib.h>
#include <string.h>

#include "exporter/rpc/messages.h"

enum { KINDS = 8 };

/* false: refused. */
static bool again(unsigned kind, const void *in, size_t len, struct ni_pb_writer *w) {
  char host[NI_HOST_MAX];
  struct ni_sample *s = NULL;
  struct ni_reply r;
  struct ni_status st;
  struct ni_from_agent a = {0};
  struct ni_from_head f;
  bool given, sound = false;
  if (kind == 0 && (sound = ni_initial_decode(in, len, host, &s)))
    ni_initial_encode(w, host, s);
  if (kind == 1 && (sound = ni_update_decode(in, len, host, &s)))
    ni_update_encode(w, host, s), ni_node_encode(w, 9, host, s);
  if (kind == 2 && (sound = ni_reply_decode(in, len, &r)))
    ni_reply_encode(w, &r);
  if (kind == 3 && (sound = ni_status_decode(in, len, &st)))
    st.output = "", st.n_clients = 0, ni_status_encode(w, &st);
  if (kind == 4 && (sound = ni_name_decode(in, len, host, &given)))
    ni_name_encode(w, host);
  if (kind == 5 && (sound = ni_enable_decode(in, len, &given)))
    ni_pb_put_u64(w, 1, given);
  if (kind == 6 && (sound = ni_head_decode(in, len, &f)))
    ni_head_encode(w, &f);
  if (kind == 7 && (sound = ni_agent_decode(in, len, &a))) {
    if (a.hello)
      ni_hello_encode(w, a.hello);
    else
      ni_sample_encode(w, a.sample, a.sent_ns);
  }
  free(s);
  free(a.hello);
  free(a.sample);
  return sound;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  struct ni_pb_writer one = {0}, two = {0};
  unsigned kind = size ? data[0] % KINDS : 0;
  if (size && again(kind, data + 1, size - 1, &one)) {
    if (!again(kind, one.bytes, one.n, &two) ||
        (kind != 1 && (one.n != two.n || (one.n && memcmp(one.bytes, two.bytes, one.n) != 0))))
      abort();
  }
  ni_pb_free(&one);
  ni_pb_free(&two);
  return 0;
}
