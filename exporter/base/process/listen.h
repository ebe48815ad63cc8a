/*
 * Where a server listens, as an option says it: numbers, or localhost, so that no name server is asked. Any
 * thread.
 */
#ifndef NI_LISTEN_H
#define NI_LISTEN_H

struct addrinfo;

#define NI_LISTEN_WANT "an address and a port, such as 127.0.0.1:9777, [::1]:9777 or localhost:9777"

/* NULL: it is none. Else for freeaddrinfo(). */
struct addrinfo *ni_listen_address(const char *text);

#endif
