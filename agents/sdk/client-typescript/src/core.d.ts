/** What sends requests; of no use to other programs. */
export interface Core {
  readonly servers: readonly string[];
}
