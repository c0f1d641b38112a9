#include "consumers/client/clock_model.h"

/* How far two sound readings' distances differ at most when nothing jumped: their errors. */
static uint64_t spread(uint64_t a, uint64_t b)
{
	uint64_t d = a - b;

	return (int64_t)d < 0 ? 0 - d : d;
}

void clock_model_add(struct clock_model *model, uint64_t mono, uint64_t real, uint64_t error)
{
	uint64_t distance = real - mono;

	if (model->count > 0) {
		size_t i = model->newest;

		if (mono < model->readings[i].mono)
			return;
		if (error > model->readings[i].error &&
			spread(distance, model->readings[i].distance) <= error)
			return;
		model->newest = (i + 1) % CLOCK_MODEL_READINGS;
	}
	if (model->count < CLOCK_MODEL_READINGS)
		model->count++;
	model->readings[model->newest].mono = mono;
	model->readings[model->newest].distance = distance;
	model->readings[model->newest].error = error;
}

uint64_t clock_model_wall(const struct clock_model *model, uint64_t mono)
{
	size_t at = model->newest;

	if (model->count == 0)
		return 0;
	/* From the newest back to the one that held; before the first one, the first. */
	for (size_t i = 1; i < model->count && mono < model->readings[at].mono; i++)
		at = (at + CLOCK_MODEL_READINGS - 1) % CLOCK_MODEL_READINGS;
	return mono + model->readings[at].distance;
}
