#include "agent.h"

int ni_agent_main(int argc, char **argv) {
  (void)argc, (void)argv;
  return 1;
}
