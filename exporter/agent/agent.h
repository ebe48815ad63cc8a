/*
 * The agent (docs/agent.md): one process for a node, one epoll loop. Loop and state are the main thread's;
 * the sampler and OTLP have a thread each, which share nothing with it but what their headers say.
 */
#ifndef NI_AGENT_H
#define NI_AGENT_H

/* argv[0]: for messages. The exit code. */
int ni_agent_main(int argc, char **argv);

#endif
