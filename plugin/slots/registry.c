#include "registry.h"

#include <errno.h>
#include <stdlib.h>

#include "state.h"

int ni_registry_take(uint32_t *index) {
  if (ni_g.n_free_index) {
    *index = ni_g.free_index[--ni_g.n_free_index];
    return 0;
  }
  if (ni_g.next_index >= NI_MAX_COMMS)
    return -EMFILE;
  /* room for every index ever given out, so that giving back never fails */
  if (ni_g.next_index >= ni_g.cap_free_index) {
    uint32_t cap = ni_g.cap_free_index ? 2 * ni_g.cap_free_index : 64;
    uint32_t *p = realloc(ni_g.free_index, cap * sizeof *p);
    if (!p)
      return -ENOMEM;
    ni_g.free_index = p;
    ni_g.cap_free_index = cap;
  }
  *index = ni_g.next_index++;
  return 0;
}

void ni_registry_give(uint32_t index) { ni_g.free_index[ni_g.n_free_index++] = index; }
