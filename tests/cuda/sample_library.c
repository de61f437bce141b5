/* A library whose files carry a major version, as NVIDIA's do: SAMPLE_VERSION. */
int sample_version(void);
int sample_version(void) { return SAMPLE_VERSION; }
