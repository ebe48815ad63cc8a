#include "listen.h"

#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct addrinfo *ni_listen_address(const char *text) {
  const struct addrinfo want = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV, .ai_socktype = SOCK_STREAM};
  const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : "x";
  size_t n = colon ? (size_t)(colon - text) : 0;
  bool six = n > 2 && text[0] == '[' && colon[-1] == ']';
  struct addrinfo *found = NULL;
  char host[64];
  snprintf(host, sizeof host, "%.*s", (int)(six ? n - 2 : n), text + six);
  bool number = *port && !port[strspn(port, "0123456789")] && strtoul(port, NULL, 10) <= 65535;
  if (!number || !*host || six != (strchr(host, ':') != NULL))
    return NULL;
  return getaddrinfo(strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, port, &want, &found) == 0 ? found
                                                                                                    : NULL;
}
