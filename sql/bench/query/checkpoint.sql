-- So that the pages of the preparation are not written during the measurement.
checkpoint
