#include "state.h"

union ni_global_pages ni_global_pages;
