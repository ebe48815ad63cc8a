#include "source.h"

void ni_host_find(struct ni_find *f) { (void)f; }
