/*
 * The agent: one process for a node, one epoll loop.
 *
 *   readers (readers.h) ─▶ state (live.h) ─▶ HTTP (serve.h), OTLP (otlp_send.h)
 *   sampler (sampler.h) ─▶ totals ─────────▶
 *   timer of a second   ─▶ rates, what ended goes, checkpoint every 5 s
 *   signals             ─▶ SIGTERM, SIGINT end it in order; SIGHUP reads the settings again
 *
 * Loop and state are the main thread's; the sampler and OTLP have a thread each, which share nothing with it but what their
 * headers say. Time between turns is CLOCK_MONOTONIC's; a step of CLOCK_REALTIME is counted and changes no figure.
 */
#ifndef NI_AGENT_H
#define NI_AGENT_H

/* argv[0]: for messages. The exit code. */
int ni_agent_main(int argc, char **argv);

#endif
