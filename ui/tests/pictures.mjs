// Compares two pictures as an eye would: by the share of pixels that differ visibly.
//
//   node pictures.mjs     checks the comparison itself

import { deepEqual, equal, ok } from 'node:assert/strict';
import { argv } from 'node:process';
import { fileURLToPath } from 'node:url';

/** Two values of a colour channel this far apart, of 255, look the same. Other fonts on a machine move edges by 1. */
export const VISIBLE = 24;

/** The largest share of differing pixels: 48 of 800 × 600, less than one letter of a heading. */
export const SHARE_MAX = 0.0001;

/**
 * The share of pixels with a channel that differs by more than `visible`, from 0 to 1; 1 for pictures of different sizes.
 * Runs in a page, too, so it uses nothing but its arguments.
 */
export function differing(one, other, visible) {
  if (one.width !== other.width || one.height !== other.height) return 1;
  let count = 0;
  for (let at = 0; at < one.data.length; at += 4) {
    const apart = (channel) => Math.abs(one.data[at + channel] - other.data[at + channel]) > visible;
    if (apart(0) || apart(1) || apart(2) || apart(3)) count++;
  }
  return count / (one.width * one.height);
}

export function percent(share) {
  return `${(share * 100).toFixed(4)} %`;
}

if (argv[1] === fileURLToPath(import.meta.url)) {
  const picture = (change = () => {}, width = 100, height = 100) => {
    const data = new Array(width * height * 4).fill(200);
    change(data);
    return { width, height, data };
  };
  const share = (other) => differing(picture(), other, VISIBLE);
  equal(share(picture()), 0);
  // Invisible: every channel of every pixel by the most that still looks the same, or one pixel by one.
  equal(share(picture((data) => data.fill(200 + VISIBLE))), 0);
  equal(share(picture((data) => (data[0] = 201))), 0);
  // Visible: two pixels, one of them in one channel only.
  const two = picture((data) => {
    data.fill(0, 0, 4);
    data[4 * 77 + 2] = 200 + VISIBLE + 1;
  });
  equal(share(two), 2 / 10_000);
  ok(share(two) > SHARE_MAX);
  equal(share(picture(() => {}, 100, 99)), 1);
  deepEqual([percent(0), percent(2 / 10_000)], ['0.0000 %', '0.0200 %']);
}
