import { Component, type ComponentChildren, type JSX } from "preact";

/** A view that fails says so, and leaves the others alone. */
export class Guard extends Component<{ children: ComponentChildren }, { error: string }> {
  override state = { error: "" };

  static override getDerivedStateFromError(error: unknown): { error: string } {
    return { error: error instanceof Error ? error.message : String(error) };
  }

  render(): JSX.Element {
    if (!this.state.error) return <>{this.props.children}</>;
    return (
      <div class="message" role="alert">
        <h1>This part of the report cannot be shown</h1>
        <p>{this.state.error}</p>
      </div>
    );
  }
}
