/** Training of neural networks inside of the program. */
module org.scaletrain {
  exports org.scaletrain;
}
