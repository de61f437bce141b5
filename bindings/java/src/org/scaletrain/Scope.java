package org.scaletrain;

/** Names what is made in a graph until it is closed: {@code try (Scope s = graph.scope("encoder")) { ... }}. */
public final class Scope implements AutoCloseable {
  private final Graph graph;
  private boolean over;

  Scope(Graph graph) {
    this.graph = graph;
  }

  /** Ends it. Closing twice is fine. */
  @Override
  public void close() {
    if (over) return;
    over = true;
    graph.endScope();
  }
}
