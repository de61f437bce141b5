package org.scaletrain;

/** A name prefix of a graph, in effect until it is closed: {@code try (Scope s = graph.scope("encoder")) { ... }}. */
public final class Scope implements AutoCloseable {
  private final Graph graph;
  private boolean over;

  Scope(Graph graph) {
    this.graph = graph;
  }

  /** Ends the scope. Closing twice is allowed. */
  @Override
  public void close() {
    if (over) return;
    over = true;
    graph.endScope();
  }
}
