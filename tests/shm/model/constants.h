/* What the models take over from the code: read by spin's preprocessor and by constants.c, which compares. */

/* Entries of the filled ring per slot. */
#define MODEL_FILLED_PER_SLOT 4
/* Entries of the filled ring per slot that notes leave free for data. */
#define MODEL_KEPT_PER_SLOT   1
/* Entries of the free ring per slot. */
#define MODEL_FREE_PER_SLOT   1
/* Places to go on that an overwriting writer keeps. */
#define MODEL_RESUME_PAIRS    2
/* Debts that a ring keeps of its writer's. */
#define MODEL_DEBTS           2
