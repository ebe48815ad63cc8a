/*
 * What stands in for rpc.c where libnghttp2 or GnuTLS is missing: nothing listens, nothing connects, and both
 * say why.
 */
#include <errno.h>
#include <stdio.h>

#include "rpc.h"

int ni_rpc_listen(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                  const struct ni_rpc_handler *h, void *arg, char *why, size_t cap) {
  snprintf(why, cap, "%s: no gRPC: built without libnghttp2 or GnuTLS", at);
  return -ENOTSUP;
}

int ni_rpc_connect(struct ni_rpc **out, const char *at, const struct ni_rpc_options *o,
                   const struct ni_rpc_handler *h, void *arg, char *why, size_t cap) {
  return ni_rpc_listen(out, at, o, h, arg, why, cap);
}

uint16_t ni_rpc_port(const struct ni_rpc *r) { return (void)r, 0; }
const char *ni_rpc_broken(const struct ni_rpc *client) { return (void)client, "built without gRPC"; }
struct ni_rpc_call *ni_rpc_begin(struct ni_rpc *client, const char *path, void *data) {
  return (void)client, (void)path, (void)data, NULL;
}
bool ni_rpc_certified(void *tls) { return (void)tls, false; }
int ni_rpc_fd(const struct ni_rpc *r) { return (void)r, -1; }
void ni_rpc_turn(struct ni_rpc *r) { (void)r; }
int ni_rpc_send(struct ni_rpc_call *c, const void *bytes, size_t len) {
  return (void)c, (void)bytes, (void)len, 0;
}
size_t ni_rpc_unsent(const struct ni_rpc_call *c) { return (void)c, 0; }
void ni_rpc_finish(struct ni_rpc_call *c, enum ni_rpc_status status, const char *text) {
  (void)c, (void)status, (void)text;
}
void ni_rpc_close(struct ni_rpc *r) { (void)r; }
