/**
 * Shows all kinds of parameters of a tool in TypeScript.
 * @param string - Define a required string property
 * @param string_enum - Define a required string property with enum
 * @param boolean - Define a required boolean property
 * @param number - Define a required number property
 * @param array - Define a required string array property
 * @param string_optional - Define an optional string property
 * @param array_optional - Define an optional string array property
 */
export function run(
    string: string,
    string_enum: "foo" | "bar",
    boolean: boolean,
    number: number,
    array: string[],
    string_optional?: string,
    array_optional?: string[],
): string {
    return Object.entries({ string, string_enum, boolean, number, array, string_optional, array_optional })
        .map(([name, value]) => `${name}: ${value}`)
        .join("\n");
}
