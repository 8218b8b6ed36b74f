/** Cells of a table: numbers, texts of a dictionary, or nothing. */
import type { Column, Table } from "../data";
import { exact, integer, shown } from "./number";
import type { Numbers, Store } from "./store";
import { visible } from "./text";

export class Cells {
  private readonly words: Numbers | null;
  private readonly numbers: Numbers | null;
  private readonly whole: Numbers | null;

  constructor(store: Store, readonly column: Column) {
    this.words = column.words ? store.get(column.words) : null;
    this.numbers = column.numbers ? store.get(column.numbers) : null;
    this.whole = column.whole ? store.get(column.whole) : null;
  }

  get hasNumbers(): boolean {
    return this.numbers !== null;
  }

  get hasEmpty(): boolean {
    return this.words !== null && this.words.includes(-2);
  }

  /** The place of its text in the dictionary; -1: a number; -2: nothing. */
  word(row: number): number {
    const place = this.words ? this.words[row] : -1;
    if (place >= 0) return place < this.column.dictionary.length ? place : -2;
    return place === -1 && this.numbers ? -1 : -2;
  }

  number(row: number): number {
    return this.numbers ? this.numbers[row] : NaN;
  }

  private isWhole(row: number): boolean {
    return this.whole !== null && this.whole[row] !== 0;
  }

  /** As people see it. */
  shown(row: number): string {
    const word = this.word(row);
    if (word >= 0) return visible(this.column.dictionary[word]);
    if (word === -2) return "";
    const value = this.number(row);
    return this.isWhole(row) ? integer(value) : shown(value, this.column.style);
  }

  /** With all digits, and texts as they are. */
  exact(row: number): string {
    const word = this.word(row);
    if (word >= 0) return this.column.dictionary[word];
    if (word === -2) return "";
    const value = this.number(row);
    return this.isWhole(row) ? integer(value) : exact(value, this.column.style === "repr");
  }
}

export interface Sheet {
  table: Table;
  cells: Cells[];
  mood: Numbers;
  tensor: Numbers;
}

const sheets = new WeakMap<Table, Sheet>();

export function sheetOf(store: Store, table: Table): Sheet {
  let sheet = sheets.get(table);
  if (!sheet) {
    sheet = {
      table,
      cells: table.columns.map((column) => new Cells(store, column)),
      mood: store.get(table.mood),
      tensor: store.get(table.tensor),
    };
    sheets.set(table, sheet);
  }
  return sheet;
}
