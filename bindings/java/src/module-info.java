/** Trains neural networks inside the program. */
module org.scaletrain {
  exports org.scaletrain;
}
