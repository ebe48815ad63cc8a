#include "threads.h"

#include <pthread.h>
#include <stdlib.h>

size_t ni_threads(size_t n, void *(*work)(void *), void *arg, size_t size) {
  pthread_t *thread = n > 1 ? calloc(n - 1, sizeof *thread) : NULL;
  size_t made = 0;
  while (thread && made < n - 1 &&
         pthread_create(&thread[made], NULL, work, (char *)arg + (made + 1) * size) == 0)
    made++;
  (void)work(arg);
  for (size_t i = 0; i < made; i++)
    (void)pthread_join(thread[i], NULL);
  free(thread);
  return made + 1;
}
