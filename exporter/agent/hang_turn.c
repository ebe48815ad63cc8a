#include "hang_turn.h"
